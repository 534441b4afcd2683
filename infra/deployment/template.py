"""Reads parameters, tables and resources that outlive the stack, from infra/template.yaml or a stack's template."""

import json
import pathlib
import re

import yaml

PATH = pathlib.Path(__file__).resolve().parents[1] / "template.yaml"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Expands CloudFormation's short forms."""


def _long_form(loader, suffix, node):
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _long_form)


def read(text):
    """A template from YAML or JSON text, or already parsed by the AWS CLI."""
    return text if isinstance(text, dict) else yaml.load(text, _Loader)  # noqa: S506, the loader is a safe one


def ours():
    return read(PATH.read_text(encoding="utf-8"))


TABLE, SECRET = "AWS::DynamoDB::Table", "AWS::SecretsManager::Secret"


def named(template, stack, kind):
    """The names of all tables or secrets of a stack, by logical id."""
    key = "TableName" if kind == TABLE else "Name"
    return {
        logical: resource["Properties"][key]["Fn::Sub"].replace("${AWS::StackName}", stack)
        for logical, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def kept(template, stack, kind):
    """The tables or secrets that outlive the stack, in the same form."""
    return {
        logical: name
        for logical, name in named(template, stack, kind).items()
        if template["Resources"][logical].get("DeletionPolicy", "Delete").startswith("Retain")
    }


def only(template, logicals):
    """A template of these resources alone, small enough for a request."""
    parameters = {
        name: {key: value for key, value in parameter.items() if key != "Description"}
        for name, parameter in template["Parameters"].items()
    }
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": parameters,
        "Conditions": template["Conditions"],
        "Resources": {logical: template["Resources"][logical] for logical in logicals},
    }


def with_ours(deployed, logicals):
    """The text of a deployed template with these resources of ours as well. The rest stays: an import must change nothing else."""
    if isinstance(deployed, dict):
        deployed = "\n" + yaml.safe_dump(deployed, sort_keys=False)
    text = PATH.read_text(encoding="utf-8")
    ours = [re.search(rf"^  {logical}:\n(?:(?:    .*)?\n)*", text, re.MULTILINE).group() for logical in logicals]
    return deployed.replace("\nResources:\n", "\n".join(["", "Resources:", *ours]), 1)


def tables(template):
    """Key and indexes of every table, limited to the parts that DynamoDB cannot change in place."""
    return {
        logical: _shape(resource["Properties"])
        for logical, resource in sorted(template["Resources"].items())
        if resource["Type"] == TABLE
    }


def _shape(table):
    """Key and indexes of a table, from its properties in a template or from DynamoDB's description of it."""
    types = {attribute["AttributeName"]: attribute["AttributeType"] for attribute in table["AttributeDefinitions"]}

    def key(of):
        return [f"{part['AttributeName']} {types[part['AttributeName']]} {part['KeyType']}" for part in of["KeySchema"]]

    def indexes(kind):
        return {index["IndexName"]: [key(index), index["Projection"]] for index in table.get(kind, [])}

    return {
        "key": key(table),
        "local_indexes": indexes("LocalSecondaryIndexes"),
        "indexes": indexes("GlobalSecondaryIndexes"),
    }


def differences(properties, described, expires_by):
    """How a table differs from its properties in a template, each a clause about the table.

    `described` is DynamoDB's description of the table, `expires_by` the attribute by which its rows expire, or None.
    """

    def comparable(index):
        key, projection = index
        return key, projection["ProjectionType"], sorted(projection.get("NonKeyAttributes", []))

    wanted, there = _shape(properties), _shape(described)
    found = [] if wanted["key"] == there["key"] else ["its key is another"]
    for kind in ("local_indexes", "indexes"):
        for name in sorted({*wanted[kind], *there[kind]}):
            if name not in there[kind]:
                found.append(f"it lacks the index {name}")
            elif name not in wanted[kind]:
                found.append(f"it has an index {name}")
            elif comparable(wanted[kind][name]) != comparable(there[kind][name]):
                found.append(f"its index {name} has another key, or holds other attributes")
    expires = properties.get("TimeToLiveSpecification", {}).get("AttributeName")
    if expires != expires_by:
        found.append(
            f"its rows do not expire by {expires}, as after a restore, for which docs/operations.md has the command"
            if expires
            else f"its rows expire by {expires_by}"
        )
    return found


def impossible(before, after):
    """The changes from `before` to `after` (both in the form of `tables`) that a single update cannot make.

    DynamoDB creates or deletes one global index of a table at a time, and CloudFormation does not split an update. An index whose
    key or projection changes is deleted and created again; a table whose key or local index changes is replaced, which
    CloudFormation refuses for a table with an explicit name.
    """
    problems = []
    for logical, old in before.items():
        new = after.get(logical)
        if new is None:
            continue
        if new["key"] != old["key"] or new["local_indexes"] != old["local_indexes"]:
            problems.append(
                f"{logical}: its key or a local index changes, which DynamoDB never does: make another table and copy the rows"
            )
        made = [name for name in new["indexes"] if name not in old["indexes"]]
        deleted = [name for name in old["indexes"] if name not in new["indexes"]]
        changed = [name for name in new["indexes"] if name in old["indexes"] and new["indexes"][name] != old["indexes"][name]]
        for name in changed:
            problems.append(
                f"{logical}: the index {name} changes its key or what it holds: make one of another name, and delete {name} in a later release"
            )
        if len(made) + len(deleted) > 1:
            what = [f"makes {name}" for name in made] + [f"deletes {name}" for name in deleted]
            problems.append(f"{logical}: one update {' and '.join(what)}, and DynamoDB does one of these at a time")
    return problems


# --------------------------------------------------------------------------------- the last release, see CONTRIBUTING.md

RELEASED = pathlib.Path(__file__).resolve().with_name("released-tables.json")

if __name__ == "__main__":
    # Run at a release by make released-tables
    RELEASED.write_text(json.dumps(tables(ours()), indent=2) + "\n", encoding="utf-8")

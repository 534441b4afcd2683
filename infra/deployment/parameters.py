"""Reads the operator's parameter file and checks it against the template before anything is created."""

import difflib
import re

# Words of the example file; no working value contains them.
PLACEHOLDER = re.compile(r"(?<![a-z0-9])(example|replace[-_ ]?me|change[-_ ]?me)(?![a-z0-9])|…|^(\.{3}|<.*>|proj_|whsec_)$", re.I)

# The parameters that `make deploy` sets itself.
SET_BY_DEPLOY = {
    "CodeBucket": "it is CODE_BUCKET of make deploy",
    "CodePrefix": "make deploy chooses it",
    "Architecture": "it is ARCHITECTURE of make deploy",
    "FirstDeployment": "make deploy knows it",
}


def read(path):
    """The values by key, and the problems of the lines; raises OSError.

    One `Key = Value` per line. Blanks around both and Windows' line ends are ignored; the rest of the value is kept as it is. A line
    that begins with `#` is a comment.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return {}, [f"{path} is not written in UTF-8: save it so (in PowerShell: Out-File -Encoding utf8)"]
    values, lines, problems = {}, {}, []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, separator, value = line.partition("=")
        key = key.strip()
        if not separator or not key:
            # The line itself is not shown: it may be the second half of a key.
            problems.append(f"{path}, line {number} is not Key=Value: write it so, on one line, or put a # in front of it")
        elif key in values:
            problems.append(f"{path}: {key} stands on line {lines[key]} and again on line {number}: keep one of them")
        else:
            values[key], lines[key] = value.strip(), number
    return values, problems


def problems(values, known, deployed, first, source):
    """The problems of the values, by the template's `known` parameters; on a first deployment also the missing ones.

    `deployed` are the parameters of the stack, which may be of another version.
    """
    found = []
    for key, value in values.items():
        if key in SET_BY_DEPLOY:
            found.append(f"{key} does not belong into {source}: {SET_BY_DEPLOY[key]}")
        elif key not in known and key in deployed:
            found.append(f"{key} is a parameter of the version that is deployed, and not of this one: put a # in front of its line")
        elif key not in known:
            found.append(f"{key} is no parameter of infra/template.yaml{_meant(key, known)}")
        elif problem := _problem(value, known[key]):
            found.append(f"{key} {problem}")
    if first:
        for key, parameter in known.items():
            if "Default" not in parameter and key not in values and key not in SET_BY_DEPLOY:
                found.append(f"{key} is missing: a first deployment needs it in {source}. {_meaning(parameter)}")
    return found


def _meant(key, known):
    lower = {name.lower(): name for name in known if name not in SET_BY_DEPLOY}
    near = difflib.get_close_matches(key.lower(), lower, 1, 0.75)
    return f": is {lower[near[0]]} meant?" if near else ": infra/deploy.parameters.example lists them"


def _meaning(parameter):
    return f"It is: {parameter['Description']}"


def _problem(value, parameter):
    """The problem of one value. CloudFormation would report most of them too, but only after the build. Never contains a secret value."""
    secret = parameter.get("NoEcho")
    shown = "what stands there" if secret else f"'{value}'"
    if PLACEHOLDER.search(value):
        leave = ", or put a # in front of the line" if "Default" in parameter else ""
        return f"still has the example's value{'' if secret else f' {shown}'}: write your own{leave}. {_meaning(parameter)}"
    if not value and "Default" not in parameter:
        return f"is empty: it needs a value. {_meaning(parameter)}"
    if "AllowedValues" in parameter and value not in [str(allowed) for allowed in parameter["AllowedValues"]]:
        return f"is {shown}: it can be {', '.join(str(allowed) for allowed in parameter['AllowedValues'])}"
    if "AllowedPattern" in parameter and not re.fullmatch(parameter["AllowedPattern"], value):
        quoted = ": values stand without quotes" if value[:1] in "\"'" else ""
        return f"is {shown}, which is not like {parameter['AllowedPattern']}{quoted}. {_meaning(parameter)}"
    if parameter["Type"] == "Number":
        least, most = parameter.get("MinValue", float("-inf")), parameter.get("MaxValue", float("inf"))
        try:
            fits = least <= float(value) <= most
        except ValueError:
            return f"is {shown}: it is a number. {_meaning(parameter)}"
        if not fits:
            bounds = [f"at least {least}"] * ("MinValue" in parameter) + [f"at most {most}"] * ("MaxValue" in parameter)
            return f"is {shown}: it is {' and '.join(bounds)}. {_meaning(parameter)}"
    return None

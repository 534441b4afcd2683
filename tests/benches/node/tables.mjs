// DynamoDB, with the names of the tables as the environment gives them.

import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";

export const database = DynamoDBDocumentClient.from(new DynamoDBClient({}));

export const table = (name) => `${process.env.TABLE_PREFIX}${name}`;

/** The row with this id, or undefined. */
export async function get(name, id, ConsistentRead) {
  const { Item } = await database.send(new GetCommand({ TableName: table(name), Key: { id }, ConsistentRead }));
  return Item;
}

/** The first row of an index whose `attribute` has the value, or undefined. */
export async function first(name, attribute, value) {
  const found = await database.send(
    new QueryCommand({
      TableName: table(name),
      IndexName: `by_${attribute}`,
      KeyConditionExpression: "#attribute = :value",
      ExpressionAttributeNames: { "#attribute": attribute },
      ExpressionAttributeValues: { ":value": value },
      Limit: 1,
    }),
  );
  return found.Items[0];
}

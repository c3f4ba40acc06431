import type { TextAnswer, TextRequest } from "../protocol.js";
import { valueText } from "../value-text.js";
import { finestOf } from "./chunk-plan.js";
import { PRIORITY } from "./chunk-queue.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { indicesOf } from "./read-whole.js";

/** Reads the first values of a variable as texts, in C order. @throws ReadFailure, or the signal's reason */
export async function readTexts(
  session: DatasetSession,
  { variable: path, maxCount }: TextRequest,
  signal: AbortSignal,
): Promise<TextAnswer> {
  const variable = session.variable(path);
  const { shape } = variable;
  const length = shape.reduce((product, count) => product * count, 1);
  const source = finestOf(variable);
  const texts: string[] = [];
  let read: string | undefined;
  let chunk: Chunk;
  for (const cell of indicesOf(shape)) {
    if (texts.length >= maxCount) break;
    const { coords, offset } = session.placeOf(source, cell);
    if (read !== `${coords}`) {
      read = `${coords}`;
      chunk = await session.readChunk(source, coords, PRIORITY.probe, signal);
    }
    texts.push(valueText(variable, chunk, offset));
  }
  return { kind: "text", texts, length };
}

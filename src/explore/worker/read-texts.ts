import type { TextRequest, WorkerAnswer } from "../protocol.js";
import { valueText } from "../value-text.js";
import { PRIORITY } from "./chunk-queue.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { indicesOf } from "./read-whole.js";

/** Reads the first values of a variable as texts, in C order. @throws ReadFailure, or the signal's reason */
export async function readTexts(
  session: DatasetSession,
  { variable: path, maxCount }: TextRequest,
  signal: AbortSignal,
): Promise<
  Extract<WorkerAnswer, { kind: "text" }> extends infer Answer ? Omit<Answer, "id"> & { kind: "text" } : never
> {
  const variable = session.variable(path);
  const { shape, chunkShape } = variable;
  const length = shape.reduce((product, count) => product * count, 1);
  const source = { level: 0, path };
  const strides = session.stridesOf(source);
  const texts: string[] = [];
  let coords = "";
  let chunk: Chunk;
  for (const cell of indicesOf(shape)) {
    if (texts.length >= maxCount) break;
    const needed = cell.map((index, axis) => Math.floor(index / chunkShape[axis]!));
    if (coords !== `${needed}` || texts.length === 0) {
      coords = `${needed}`;
      chunk = await session.readChunk(source, needed, PRIORITY.probe, signal);
    }
    const offset = cell.reduce((sum, index, axis) => sum + (index % chunkShape[axis]!) * strides[axis]!, 0);
    texts.push(valueText(variable, chunk, offset));
  }
  return { kind: "text", texts, length };
}

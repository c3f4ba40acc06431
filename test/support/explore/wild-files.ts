import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Test } from "tap";
import { PACKAGE_ROOT } from "../clients/client-generation.js";
import { runPython } from "../clients/fixtures.js";
import { PYTHON } from "../clients/require-client.js";

/**
 * What may be shown at a pixel: a value, null if it is missing, a colour, nothing since no cell is there, the rim between dots, or any
 * value between two.
 */
export type Allowed =
  | number
  | null
  | "outside"
  | "rim"
  | readonly [red: number, green: number, blue: number]
  | { readonly low: number; readonly high: number };

/** A pixel of the canvas, and what may be shown there. */
export type ExpectedPixel = readonly [x: number, y: number, allowed: readonly Allowed[]];

/** A place that everybody knows: its pixel and its degrees. */
export interface KnownPlace {
  readonly name: string;
  readonly x: number;
  readonly y: number;
  readonly lon: number;
  readonly lat: number;
  /** Degrees from a cell's middle to its edges: of longitude, of latitude. */
  readonly reach: readonly [number, number];
}

/** What a picture must show; see `draw_wild_files.py`. */
export interface ExpectedPicture {
  readonly pixels: readonly ExpectedPixel[];
  /** The warm square in the north-west, and what it shows. */
  readonly mark: ExpectedPixel;
  /** How many times as long a cell's side is upwards as to the right, if its sides are equal on Earth or in an image. */
  readonly proportion: number;
  /** Pixels at points of the coast, by scale; undefined if it is no map. */
  readonly coasts?: Readonly<Record<"110m" | "50m", readonly (readonly [number, number])[]>>;
  readonly places?: readonly KnownPlace[];
}

/** What the drawing script is asked. */
interface DrawingJob {
  readonly file: string;
  readonly variable: string;
  /** Index per dimension; those of the plane count for nothing. */
  readonly at: readonly number[];
}

/** A canvas of the explorer: what it shows, and how exactly the script must know where. */
export interface CanvasJob extends DrawingJob {
  readonly box: readonly number[];
  readonly width: number;
  readonly height: number;
  /** Pixels by which places may be off. */
  readonly blur?: number | undefined;
  /** Pixels around, of whose cells any value between the least and the greatest is right. */
  readonly spread?: number | undefined;
}

/** A thumbnail, and the values that its pixels stand for. */
export interface ThumbnailJob extends DrawingJob {
  readonly thumbnail: readonly [width: number, height: number];
}

/** Writes the files of `write_wild_files.py` into a directory: those named, or all. */
export async function writeWildFiles(directory: string, names: readonly string[] = []): Promise<string> {
  await runPython("write_wild_files.py", [directory, ...names]);
  return directory;
}

/** Starts the independent drawing script on a directory of such files, until the test ends. */
export function startDrawing(t: Pick<Test, "teardown">, directory: string) {
  const script = join(PACKAGE_ROOT, "test", "fixtures", "draw_wild_files.py");
  const child = spawn(PYTHON, [script, directory], { stdio: ["pipe", "pipe", "inherit"] });
  t.teardown(() => child.kill());
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`draw_wild_files.py ended with ${code}`);
  });
  ended.catch(() => {});
  return async <T = ExpectedPicture>(job: CanvasJob | ThumbnailJob): Promise<T> => {
    child.stdin.write(`${JSON.stringify(job)}\n`);
    const line = await Promise.race([lines.next(), ended]);
    return JSON.parse(line.value) as T;
  };
}

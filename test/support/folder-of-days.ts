import { utimes } from "node:fs/promises";
import { join } from "node:path";
import type { Test } from "tap";
import { type Program, startProgram } from "./servers/start-program.js";
import { writeNetcdfPart } from "./write-parts.js";
import { makeDirectory } from "./write-store.js";

/** First day of {@link dayName}, counted from 2000-01-01. */
const FIRST_DAY = 8_401;
/** Days of 2023 and 2024, of which the second is a leap year. */
export const TWO_YEARS = 365 + 366;

/** Path of the file of a day below its folder: `2023/sst-20230101.nc` for 0. */
function dayName(day: number): string {
  const date = new Date(Date.UTC(2000, 0, 1 + FIRST_DAY + day)).toISOString().slice(0, 10);
  return `${date.slice(0, 4)}/sst-${date.replaceAll("-", "")}.nc`;
}

/** Writes the NetCDF-3 files of days, each of one step: `v[0, y]` is `10 * (FIRST_DAY + day) + y`. */
async function writeDays(folder: string, first: number, count: number): Promise<void> {
  for (let day = first; day < first + count; day++)
    await writeNetcdfPart(folder, dayName(day), { first: FIRST_DAY + day, count: 1 });
}

/** Writes the file of the day that comes next, just now. */
export async function writeNextDay(folder: string): Promise<void> {
  await writeDays(folder, TWO_YEARS, 1);
  const now = new Date();
  await utimes(join(folder, dayName(TWO_YEARS)), now, now);
}

/** Makes a folder of the days of two years. */
export async function makeFolderOfDays(t: Test): Promise<string> {
  const folder = join(await makeDirectory(t), "days");
  await writeDays(folder, 0, TWO_YEARS);
  return folder;
}

/** Starts the program, which refreshes five times a second. */
export function serveFolder(t: Test, args: readonly string[]): Promise<Program> {
  return startProgram(t, { args: ["--refresh", "0.2", ...args] });
}

/** Asks again until an answer is as expected. */
export async function until<T>(ask: () => Promise<T>, isThere: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (isThere(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

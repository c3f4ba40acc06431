import { setTimeout as sleep } from "node:timers/promises";
import { startChild, stopChild } from "../children.js";
import { freePort } from "../free-port.js";
import type { RunningSubject } from "./subject.js";

const READY_PAUSE_MS = 50;

/** A server that another program is. */
export interface ServingProgram extends RunningSubject {
  readonly pid: number;
  /** The end of what it wrote to standard error. */
  errorText(): string;
}

/**
 * Starts a program that serves on a port of this machine, and waits until it answers.
 * @param commandOf Returns program and arguments for a port.
 * @param ready Path that is answered with 200 as soon as it is ready.
 * @throws Error if it ends before
 */
export async function startServing(
  commandOf: (port: string) => readonly [program: string, args: readonly string[]],
  ready: string,
  env: Readonly<Record<string, string>> = {},
): Promise<ServingProgram> {
  // Few programs can be asked which port they got. If another one takes this port in between, the start fails with a message.
  const port = await freePort();
  const [program, args] = commandOf(String(port));
  const child = await startChild(program, args, { env: { ...process.env, ...env } });
  const baseUrl = `http://127.0.0.1:${port}`;
  let ended: number | string | undefined;
  void child.ended.then((status) => {
    ended = status;
  });
  // Programs that write their access log to standard output would wait until somebody reads it.
  child.process.stdout!.resume();
  while (!(await fetch(baseUrl + ready).catch(() => undefined))?.ok) {
    if (ended !== undefined) throw new Error(`${args[0]} ended with ${ended}: ${child.errorText().trim()}`);
    await sleep(READY_PAUSE_MS);
  }
  return { baseUrl, pid: child.pid, errorText: child.errorText, stop: () => stopChild(child) };
}

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type RawConnection, requestText } from "./raw-request.js";

/** Returns ids of the processes that a process has started. Linux. */
export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter(Boolean)
    .map(Number);
}

/** Tells whether a process is alive, and no zombie. */
export function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

/** Waits until a condition is true. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await delay(20);
}

/** Returns the process that has the other end of a connection to `port`. Sends a request, so that it is accepted. */
export async function processOfConnection(
  pids: readonly number[],
  port: number,
  connection: RawConnection,
): Promise<number> {
  connection.send(requestText("/datasets"));
  await connection.answer();
  const inode = inodeOf(port, connection.socket.localPort as number);
  const found = pids.find((pid) => socketsOf(pid).includes(`socket:[${inode}]`));
  if (found === undefined) throw new Error(`expected the connection to be with one of ${pids}`);
  return found;
}

function inodeOf(local: number, remote: number): string {
  const hex = (number: number) => `:${number.toString(16).toUpperCase().padStart(4, "0")}`;
  for (const line of readFileSync("/proc/self/net/tcp", "utf8").split("\n")) {
    const [, from, to, , , , , , , inode] = line.trim().split(/\s+/);
    if (from?.endsWith(hex(local)) && to?.endsWith(hex(remote))) return inode as string;
  }
  throw new Error(`expected a connection from ${remote} to ${local}, found none`);
}

function socketsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return "";
    }
  });
}

import { openConnection, type RawAnswer, requestText } from "../support/servers/raw-request.js";

/** What is asked for, and what may be answered. */
export interface Target {
  readonly path: string;
  /** What is wrong with an answer; undefined: nothing. */
  problemOf(answer: RawAnswer): string | undefined;
}

/** Clients that ask without a pause, each on one connection, and look at every answer. */
export interface Hammer {
  /** Answers so far. */
  readonly answers: number;
  /** What went wrong so far. */
  readonly problems: readonly string[];
  /** Resolves when each client has had so many more answers, or has failed. */
  more(count: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startHammer(
  port: number,
  targets: () => readonly Target[],
  clients = 6,
): Promise<Hammer> {
  const problems: string[] = [];
  const counts = Array.from({ length: clients }, () => 0);
  let isStopped = false;

  async function client(number: number): Promise<void> {
    const connection = await openConnection(port);
    try {
      for (let turn = number; !isStopped; turn++) {
        const all = targets();
        const target = all[turn % all.length] as Target;
        connection.send(requestText(target.path));
        const answer = await connection.answer();
        counts[number] = (counts[number] as number) + 1;
        const problem = target.problemOf(answer);
        if (problem !== undefined) problems.push(`${target.path}: ${problem}`);
      }
    } catch (error) {
      problems.push(`client ${number}: ${String(error)}`);
      counts[number] = Number.POSITIVE_INFINITY;
    } finally {
      connection.socket.destroy();
    }
  }

  const running = Array.from({ length: clients }, (_, number) => client(number));
  return {
    get answers() {
      return counts.reduce((sum, count) => sum + count, 0);
    },
    problems,
    async more(count) {
      const wanted = counts.map((before) => before + count);
      while (!wanted.every((want, number) => (counts[number] as number) >= want)) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    async stop() {
      isStopped = true;
      await Promise.all(running);
    },
  };
}

/** 200 and exactly one of these bodies. */
export function bodyIs(path: string, ...bodies: readonly Uint8Array[]): Target {
  return {
    path,
    problemOf({ status, body }) {
      if (status !== 200) return `status ${status}: ${body.toString().slice(0, 200)}`;
      return bodies.some((expected) => body.equals(expected)) ? undefined : "another body";
    },
  };
}

/** The same, or 404. */
export function bodyIsOrAbsent(path: string, ...bodies: readonly Uint8Array[]): Target {
  const target = bodyIs(path, ...bodies);
  return { path, problemOf: (answer) => (answer.status === 404 ? undefined : target.problemOf(answer)) };
}

/** 200, and a text that is there. */
export function textHas(path: string, text: string): Target {
  return {
    path,
    problemOf({ status, body }) {
      if (status !== 200) return `status ${status}`;
      return body.includes(text) ? undefined : `no ${text} in it`;
    },
  };
}

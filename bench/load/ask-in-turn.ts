import { connect } from "node:net";
import { createAnswerReader } from "./answer-reader.js";
import { targetOf } from "./target.js";

/** Answers that came one after the other. */
export interface AnswersInTurn {
  readonly requests: number;
  /** From request to last byte, summed up. */
  readonly milliseconds: number;
}

/**
 * Asks for paths in turn over one connection, each when the answer before it is whole, until time is over or, with
 * `isOnce`, until every path has been asked for.
 * @param onHead Told each answer's status line and headers.
 * @throws Error for another status than 200.
 */
export function askInTurn(
  baseUrl: string,
  paths: readonly string[],
  { seconds, isOnce }: { readonly seconds: number; readonly isOnce: boolean },
  onHead: (head: string, path: string) => void,
): Promise<AnswersInTurn> {
  const target = targetOf(baseUrl);
  const requests = paths.map((path) => target.requestBytes(path));
  const readBuffer = Buffer.allocUnsafeSlow(256 * 1024);
  const pathAt = (i: number) => paths[i % paths.length]!;
  return new Promise((resolve, reject) => {
    let answered = 0;
    let milliseconds = 0;
    let sentAt = 0;
    const end = performance.now() + seconds * 1_000;
    const reader = createAnswerReader((head) => onHead(head, pathAt(answered)));
    const socket = connect({
      host: target.host,
      port: target.port,
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback(length, buffer) {
          const taken = reader.take((buffer as Buffer).subarray(0, length));
          if (taken === "more") return true;
          if (taken !== 200) {
            socket.destroy(new Error(`${pathAt(answered)}: expected status 200, received ${taken}`));
            return false;
          }
          const now = performance.now();
          milliseconds += now - sentAt;
          answered++;
          if (now >= end || (isOnce && answered === paths.length)) {
            socket.destroy();
            resolve({ requests: answered, milliseconds });
            return false;
          }
          send(now);
          return true;
        },
      },
    });
    function send(now: number): void {
      sentAt = now;
      socket.write(requests[answered % requests.length]!);
    }
    socket.once("connect", () => send(performance.now()));
    socket.once("error", reject);
    socket.once("end", () => reject(new Error("the server closed the connection")));
  });
}

import type { Test } from "tap";
import type { ExploreAnswer, WorkerRequest } from "../../../src/explore/protocol.js";
import { ExploreSession } from "../../../src/explore/worker/explore-session.js";
import type { ServerConfig } from "../../../src/server/open-app.js";
import { type RunningServer, startServer } from "../servers/start-server.js";

type Each<T> = T extends unknown ? Omit<T, "id"> : never;
/** A request without its id. */
export type Asked = Each<WorkerRequest>;
type Kind = ExploreAnswer["kind"];
/** An answer of some kind. */
export type Answer<K extends Kind> = Extract<ExploreAnswer, { kind: K }>;

/** The worker's side of the explorer, in this process. */
export type ExploreClient = ReturnType<typeof createExploreClient>;

/** Creates a client without a dataset. */
export function createExploreClient(maxBytes = 192 * 2 ** 20) {
  /** All answers so far, in order. */
  const answers: ExploreAnswer[] = [];
  const waiting = new Set<() => void>();
  const session = new ExploreSession({ maxInFlight: 6, maxBytes }, (answer) => {
    answers.push(structuredClone(answer));
    for (const look of [...waiting]) look();
  });
  let lastId = 0;
  const waitFor = (accept: (answer: ExploreAnswer) => boolean) =>
    new Promise<ExploreAnswer>((resolve) => {
      const look = () => {
        const found = answers.find(accept);
        if (found === undefined) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  const send = (request: Asked) => {
    lastId++;
    void session.handle({ id: lastId, ...request } as WorkerRequest);
    return lastId;
  };
  return {
    send,
    answers,
    waitFor,
    /** Sends a request and waits for its last answer: a frame or series that is whole, or any other. */
    async ask<K extends Kind>(request: Asked, kind: K): Promise<Answer<K>> {
      const id = send(request);
      const answer = await waitFor(
        (each) => each.id === id && !("done" in each && each.done < each.total && each.kind === kind),
      );
      if (answer.kind !== kind) throw new Error(`expected ${kind}, received ${JSON.stringify(answer)}`);
      return answer as Answer<K>;
    },
  };
}

/** Starts a server, and opens one of its datasets. */
export async function openExplore(
  t: Pick<Test, "teardown">,
  config: Partial<ServerConfig>,
  id: string,
  group = "",
) {
  const server = await startServer(t, config);
  const client = createExploreClient();
  const opened = await client.ask(openRequest(server, id, group), "opened");
  return { client, server, opened };
}

/** Returns the request that opens a dataset, or a group of it. */
export function openRequest({ url }: RunningServer, id: string, group = ""): Asked {
  const store = `${url}/datasets/${id}/zarr/${group === "" ? "" : `${group}/`}`;
  return { kind: "open", store, overviews: undefined, group, token: undefined };
}

/** Opens a store that stands alone, without overviews. */
export async function openStore({ url }: { readonly url: string }, maxBytes?: number) {
  const client = createExploreClient(maxBytes);
  const request: Asked = { kind: "open", store: url, overviews: undefined, group: "", token: undefined };
  return { client, opened: await client.ask(request, "opened") };
}

import type { Log } from "../observe/log.js";
import type { HttpResponse } from "./listening/listener.js";
import type { BodyTaker } from "./load.js";
import type { NamedRequest } from "./metrics/access-log.js";
import type { Body } from "./reply.js";

/** A request that receives a body: the `Exchange`. */
export interface BodyReceiver extends BodyTaker, NamedRequest {
  readonly res: HttpResponse;
  readonly context: { readonly log: Log };
  readonly over: boolean;
  byteLength: number;
  cork(write: () => void): void;
  own(body: Body): void;
  endWhole(): void;
  drop(): void;
}

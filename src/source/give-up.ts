import { LinkedList, type ListEntry } from "../linked-list.js";
import { sourceTimeoutMs } from "./source-timeout.js";

/** Something that is waited for, for a time. */
export interface Awaited {
  readonly deadline: number;
  /** Called once when its time is over. */
  readonly giveUp: () => void;
  /** Among all that is waited for; undefined: not any more. */
  place: ListEntry<Awaited> | undefined;
}

/** In the order in which they began, which is that of their deadlines while the time limit stays. */
const awaited = new LinkedList<Awaited>();
let timer: NodeJS.Timeout | undefined;
let timerAt = Number.POSITIVE_INFINITY;

/**
 * Gives something up when the time limit for sources is over, unless {@link settled} comes first. One timer for all, set anew only
 * when it fires: one for each call cost more than half of what the call does.
 */
export function giveUpInTime(giveUp: () => void): Awaited {
  const added: Awaited = { deadline: performance.now() + sourceTimeoutMs(), giveUp, place: undefined };
  added.place = awaited.add(added);
  if (added.deadline < timerAt) setTimer(added.deadline);
  return added;
}

/** It need not be given up any more. */
export function settled(one: Awaited): void {
  if (one.place !== undefined) awaited.remove(one.place);
  one.place = undefined;
}

function setTimer(at: number): void {
  clearTimeout(timer);
  timerAt = at;
  // What is waited for keeps the process by itself.
  timer = setTimeout(look, Math.max(1, Math.ceil(at - performance.now()))).unref();
}

function look(): void {
  timerAt = Number.POSITIVE_INFINITY;
  const now = performance.now();
  const over: Awaited[] = [];
  let next = Number.POSITIVE_INFINITY;
  for (const one of awaited) {
    if (one.deadline <= now) over.push(one);
    else next = Math.min(next, one.deadline);
  }
  if (next < Number.POSITIVE_INFINITY) setTimer(next);
  // After one more look for what has come: the loop may have stood still, and timers come first.
  setImmediate(() => {
    for (const one of over) {
      if (one.place === undefined) continue;
      settled(one);
      one.giveUp();
    }
  });
}

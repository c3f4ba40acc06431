import { giveUpInTime, settled } from "./give-up.js";
import { guardExit } from "./guard-exit.js";
import { fileSystemOf } from "./mount-table.js";
import { NoAnswerError } from "./no-answer.js";
import { callCounts as counts } from "./source-stats.js";
import { sourceTimeoutMs } from "./source-timeout.js";

/** What functions of `node:fs` call when they are done. */
export type Done<T> = (error: Error | null, result: T) => void;

/** Begins a call of `node:fs`; may begin others after it, one at a time, before it is done. */
export type Begin<T> = (done: Done<T>) => void;

/**
 * Calls to file systems for one store, each waited for as long as `setSourceTimeout` says.
 *
 * A call that the system does not answer (a network drive that is gone, a FUSE program that hangs) cannot be taken back: it
 * keeps one of libuv's few threads until it is answered. So calls at file systems that are not this machine's own are begun a
 * few at a time, and fewer than there are threads: per store, per file system, and in all threads of the process. The
 * others wait for their turn. When all that may be under way hang, no call is begun any more, and those that wait and those
 * that come are refused at once; as soon as one is answered it goes on.
 */
export interface FileCalls {
  /**
   * @param path Where the call goes to: absolute, without links; best of a directory, since those are remembered.
   * @param onLate Called with a result that came when nobody waited any more: what it holds must be let go.
   * @throws NoAnswerError, and what the call failed with.
   */
  call<T>(path: string, begin: Begin<T>, onLate?: (result: T) => void): Promise<T>;
}

/** libuv's own default, and bound ("Thread pool work scheduling"). */
const THREADS = Math.min(1024, Math.max(2, Number.parseInt(process.env.UV_THREADPOOL_SIZE ?? "", 10) || 4));
/** Calls at a time; the rest of the threads is left to local files, the cache, and whatever else needs one. */
const MAX_FOREIGN = THREADS - Math.max(1, THREADS >> 2);
const MAX_PER_FILE_SYSTEM = Math.max(1, THREADS >> 1);
const MAX_PER_STORE = Math.min(MAX_PER_FILE_SYSTEM, Math.max(2, THREADS >> 2));
/** How soon it is tried again where other threads have begun all calls there may be. */
const POLL_MS = 5;
/** The same where calls of this thread say when they are done, unless they hang. */
const SLOW_POLL_MS = 100;

/** Calls under way, and how many of them were given up. */
interface Tally {
  running: number;
  hanging: number;
}

interface StoreQueue extends Tally {
  readonly store: string;
  /** In order; settled ones are taken out. */
  readonly waiting: Set<WaitingCall>;
}

interface WaitingCall {
  readonly fileSystem: string;
  start(): void;
  refuse(): void;
}

/** Of file systems with calls under way. */
const fileSystems = new Map<string, Tally>();
/** Of stores with calls under way or waiting. */
const stores = new Map<string, StoreQueue>();
/** Those where calls wait, the one whose turn was last at the end. */
const queued = new Set<StoreQueue>();
let polling: NodeJS.Timeout | undefined;
/** Calls of this thread at file systems that are not this machine's own, the oldest first. */
const underWay = new Set<{ readonly begunAt: number }>();
/** What takes longer hangs, as far as it can be told when the process ends. */
const LONG_MS = 1_000;

function isAnyHanging(): boolean {
  const [oldest] = underWay;
  const isOld = oldest !== undefined && performance.now() - oldest.begunAt > LONG_MS;
  return isOld || counts.hanging() > 0;
}

/** @param store What tells the store from others: its real path, or where it is said to be. */
export function createFileCalls(store: string): FileCalls {
  return {
    call(path, begin, onLate) {
      const { id, isLocal } = fileSystemOf(path);
      return isLocal ? callLocal(store, begin, onLate) : callForeign(store, id, begin, onLate);
    },
  };
}

function queueOf(store: string): StoreQueue {
  let queue = stores.get(store);
  if (queue === undefined) {
    queue = { store, running: 0, hanging: 0, waiting: new Set() };
    stores.set(store, queue);
  }
  return queue;
}

/** Begun at once, unless so many of the store's calls hang all the same: a link may lead elsewhere, a disk may be broken. */
function callLocal<T>(store: string, begin: Begin<T>, onLate: ((result: T) => void) | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    if ((stores.get(store)?.hanging ?? 0) >= MAX_PER_STORE) {
      reject(refusal());
      return;
    }
    const onHang = (by: 1 | -1) => {
      queueOf(store).hanging += by;
    };
    startTimed(begin, onLate, resolve, reject, onHang, (wasGivenUp) => {
      if (wasGivenUp) forgetIdle(queueOf(store));
    });
  });
}

function callForeign<T>(
  store: string,
  fileSystem: string,
  begin: Begin<T>,
  onLate: ((result: T) => void) | undefined,
): Promise<T> {
  const queue = queueOf(store);
  return new Promise((resolve, reject) => {
    const start = () => {
      const tally = fileSystems.get(fileSystem) ?? { running: 0, hanging: 0 };
      fileSystems.set(fileSystem, tally);
      guardExit(isAnyHanging, () => counts.foreign() > underWay.size);
      const call = { begunAt: performance.now() };
      underWay.add(call);
      queue.running++;
      tally.running++;
      counts.begin();
      const onHang = (by: 1 | -1) => {
        queue.hanging += by;
        tally.hanging += by;
        takeTurns();
      };
      startTimed(begin, onLate, resolve, reject, onHang, () => {
        underWay.delete(call);
        queue.running--;
        tally.running--;
        counts.end();
        if (tally.running === 0) fileSystems.delete(fileSystem);
        takeTurns();
        forgetIdle(queue);
      });
    };
    const state = queue.waiting.size > 0 ? "full" : stateFor(queue, fileSystem);
    if (state === "free") start();
    else if (state === "hanging") {
      reject(refusal());
      forgetIdle(queue);
    } else wait(queue, { fileSystem, start, refuse: () => reject(refusal()) }, reject);
  });
}

function wait(queue: StoreQueue, waiting: WaitingCall, reject: (error: Error) => void): void {
  const timer = giveUpInTime(() => {
    take(queue, call);
    counts.timedOut();
    reject(new NoAnswerError(sourceTimeoutMs()));
    forgetIdle(queue);
  });
  const call: WaitingCall = {
    fileSystem: waiting.fileSystem,
    start() {
      settled(timer);
      waiting.start();
    },
    refuse() {
      settled(timer);
      waiting.refuse();
    },
  };
  queue.waiting.add(call);
  queued.add(queue);
  pollForOthers();
}

function refusal(): NoAnswerError {
  counts.timedOut();
  return new NoAnswerError(undefined);
}

/** Begins a call and gives it up when its time is over. `onEnd` comes once, when it was answered. */
function startTimed<T>(
  begin: Begin<T>,
  onLate: ((result: T) => void) | undefined,
  resolve: (result: T) => void,
  reject: (error: Error) => void,
  onHang: (by: 1 | -1) => void,
  onEnd: (wasGivenUp: boolean) => void,
): void {
  let isGivenUp = false;
  let answered: (() => void) | undefined;
  const timer = giveUpInTime(() => {
    isGivenUp = true;
    counts.hang();
    counts.timedOut();
    const whenSettled = new Promise<void>((settle) => {
      answered = settle;
    });
    reject(new NoAnswerError(sourceTimeoutMs(), whenSettled));
    onHang(1);
  });
  begin((error, result) => {
    settled(timer);
    if (isGivenUp) {
      counts.unhang();
      onHang(-1);
      if (error === null) onLate?.(result);
    } else if (error === null) resolve(result);
    else reject(error);
    answered?.();
    onEnd(isGivenUp);
  });
}

function forgetIdle(queue: StoreQueue): void {
  const { store, running, hanging, waiting } = queue;
  if (running === 0 && hanging === 0 && waiting.size === 0) stores.delete(store);
}

/** Takes a call out of its queue, whose turn comes after that of the others then. */
function take(queue: StoreQueue, call: WaitingCall): void {
  queue.waiting.delete(call);
  queued.delete(queue);
  if (queue.waiting.size > 0) queued.add(queue);
}

/** Begins what may be begun, store after store, and refuses what would wait for calls that hang. */
function takeTurns(): void {
  if (queued.size === 0) return;
  for (let isProgress = true; isProgress; ) {
    isProgress = false;
    for (const queue of [...queued]) {
      const [call] = queue.waiting;
      const state = call === undefined ? "full" : stateFor(queue, call.fileSystem);
      if (call === undefined || state === "full") continue;
      isProgress = true;
      take(queue, call);
      if (state === "free") call.start();
      else call.refuse();
      forgetIdle(queue);
    }
  }
  pollForOthers();
}

/** Other threads do not say when they have done with a call. */
function pollForOthers(): void {
  if (polling !== undefined || queued.size === 0) return;
  // Others may have ended theirs since it was found that there are too many.
  const isUpToOthers = counts.foreign() >= MAX_FOREIGN || underWay.size === 0;
  polling = setTimeout(
    () => {
      polling = undefined;
      takeTurns();
    },
    isUpToOthers ? POLL_MS : SLOW_POLL_MS,
  );
}

function stateFor(queue: StoreQueue, fileSystem: string): "free" | "full" | "hanging" {
  if (queue.hanging >= MAX_PER_STORE) return "hanging";
  if (queue.running >= MAX_PER_STORE) return "full";
  const tally = fileSystems.get(fileSystem);
  if (tally !== undefined && tally.hanging >= MAX_PER_FILE_SYSTEM) return "hanging";
  if (tally !== undefined && tally.running >= MAX_PER_FILE_SYSTEM) return "full";
  const foreign = counts.foreign();
  if (foreign < MAX_FOREIGN) return "free";
  return counts.hanging() >= foreign ? "hanging" : "full";
}

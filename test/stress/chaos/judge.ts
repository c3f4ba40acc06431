import {
  ABSENT,
  CHAOS_ARRAYS,
  CHAOS_DATASETS,
  CHAOS_KEYS,
  type ChaosArray,
  type ChaosKey,
  fileCount,
  filesOf,
  POISON_DATASET,
  VISITOR_DATASET,
} from "./arrays.js";
import { now, type Span, Timeline } from "./timeline.js";

/** What a client saw of one request. */
export interface Observation {
  /** Number in `CHAOS_KEYS`. */
  readonly key: number;
  /** 0: there was no answer, or it broke off. */
  readonly status: number;
  /** Whether an answer had begun, if the status is 0. */
  readonly isBegun?: boolean;
  /** When it was sent and when its answer was there, on the clock of `now`. */
  readonly from: number;
  readonly until: number;
  /**
   * Of a chunk: the version of each of its files. Of a document of arrays that grow: their rows. Undefined where the
   * answer says nothing of it.
   */
  readonly versions?: readonly number[];
  /** How a chunk was encoded. */
  readonly coding?: string;
  /** What was wrong with the answer itself, whatever was true at the time. */
  readonly wrong?: string;
  /** Whether what is wrong is what a chunk holds. */
  readonly isContent?: boolean;
  /** What became of the connection if the status is 0, otherwise the text of the body. */
  readonly detail?: string;
}

/** In place of a version: the file is cut off, and cannot be read. */
export const DAMAGED = -2;

/** What an event may do to a request. */
export type Trouble = "no answer" | "broken off" | "500" | "503" | "torn";

interface Excuse {
  readonly event: string;
  readonly from: number;
  until: number;
  readonly troubles: ReadonlySet<Trouble>;
  readonly holdsFor: (key: ChaosKey) => boolean;
  /** How long what it has excused once may be felt by requests of the same key. */
  readonly lastsMs: number;
}

/** What came of a request. */
export type Verdict =
  | { readonly kind: "right" }
  | { readonly kind: "excused"; readonly trouble: Trouble; readonly event: string }
  | { readonly kind: "failed"; readonly trouble: string; readonly problem: string }
  | { readonly kind: "wrong"; readonly problem: string };

const RIGHT: Verdict = { kind: "right" };
/** No event excuses an answer that took longer: the program's limits for chunks and sources are a fifth of it. */
const SLOWEST_MS = 20_000;
/** How long excuses that are over are remembered. */
const REMEMBERED_MS = 120_000;

/** What is true of the data and when, and what is to be said of answers therefore. */
export class Judge {
  /** Version of every file, or {@link ABSENT} or {@link DAMAGED}. */
  readonly #files = new Map<ChaosArray, readonly Timeline<number>[]>();
  /** Length of every array, as its document says. */
  readonly rows = new Map<ChaosArray, Timeline<number>>();
  /** Whether each dataset is configured. */
  readonly configured = new Map<string, Timeline<boolean>>();
  /** In which coding the dataset that is configured now and then is asked for. */
  readonly coding = new Timeline<string>("zstd");
  #excuses: Excuse[] = [];

  constructor() {
    for (const array of CHAOS_ARRAYS) {
      const files = Array.from(
        { length: fileCount(array) },
        (_, file) => new Timeline(array.absentFiles.includes(file) ? ABSENT : 0),
      );
      this.#files.set(array, files);
      this.rows.set(array, new Timeline(array.rows));
    }
    for (const dataset of CHAOS_DATASETS) this.configured.set(dataset, new Timeline(true));
  }

  file(array: ChaosArray, file: number): Timeline<number> {
    return this.#files.get(array)![file]!;
  }

  /**
   * From now on, requests may fail for a reason.
   * @param lastsMs How long a key that was troubled by it once may be so again.
   * @returns To be called when the reason is over. @param graceMs How long it may be felt after that.
   */
  excuse(
    event: string,
    troubles: readonly Trouble[],
    holdsFor: (key: ChaosKey) => boolean = () => true,
    lastsMs = 0,
  ): (graceMs?: number) => void {
    const from = now();
    this.#excuses = this.#excuses.filter(({ until }) => until > from - REMEMBERED_MS);
    const until = Number.POSITIVE_INFINITY;
    const excuse = { event, from, until, troubles: new Set(troubles), holdsFor, lastsMs };
    this.#excuses.push(excuse);
    return (graceMs = 0) => {
      excuse.until = now() + graceMs;
    };
  }

  /** Says what came of a request. Everything that happened until its end must be known. */
  judge(seen: Observation): Verdict {
    const key = CHAOS_KEYS[seen.key]!;
    const verdict = this.#judge(seen, key);
    const isAcceptable = verdict.kind === "right" || verdict.kind === "excused";
    return isAcceptable && isSlow(seen, key) ? failed(seen, key, "slow") : verdict;
  }

  #judge(seen: Observation, key: ChaosKey): Verdict {
    if (seen.wrong !== undefined) {
      const excused = seen.isContent === true ? this.#excused(seen, key, "torn") : undefined;
      return excused ?? { kind: "wrong", problem: `${key.url}: ${seen.wrong}` };
    }
    if (seen.status === 0) return this.#troubled(seen, key, seen.isBegun ? "broken off" : "no answer");
    if (seen.status === 500) return this.#isDamaged(seen, key) ? RIGHT : this.#troubled(seen, key, "500");
    if (seen.status === 503) return this.#troubled(seen, key, "503");
    if (seen.status === 404) return this.#mayBeAbsent(seen, key) ? RIGHT : failed(seen, key, "404");
    if (![200, 206, 304].includes(seen.status)) return failed(seen, key, String(seen.status));
    return this.#answered(seen, key);
  }

  #troubled(seen: Observation, key: ChaosKey, trouble: Trouble): Verdict {
    return this.#excused(seen, key, trouble) ?? failed(seen, key, trouble);
  }

  #excused(seen: Observation, key: ChaosKey, trouble: Trouble): Verdict | undefined {
    const excuse = this.#excuses.find(
      ({ from, until, troubles, holdsFor }) =>
        from <= seen.until && until >= seen.from && troubles.has(trouble) && holdsFor(key),
    );
    if (excuse === undefined) return undefined;
    if (excuse.lastsMs > 0) this.#goesOn(excuse, seen, key);
    return { kind: "excused", trouble, event: excuse.event };
  }

  #goesOn({ event, troubles, lastsMs }: Excuse, seen: Observation, key: ChaosKey): void {
    const until = seen.until + lastsMs;
    const holdsFor = (other: ChaosKey) => other === key;
    this.#excuses.push({ event: `${event}, before`, from: seen.from, until, troubles, holdsFor, lastsMs: 0 });
  }

  #isDamaged({ from, until }: Observation, key: ChaosKey): boolean {
    if (key.kind !== "chunk") return false;
    const array = key.array!;
    return filesOf(key).some((file) =>
      this.file(array, file)
        .during(from, until)
        .some(({ state }) => state === DAMAGED),
    );
  }

  /** Whether 404 is what is to be said: no such dataset, no such place, or nothing behind it. */
  #mayBeAbsent({ from, until }: Observation, key: ChaosKey): boolean {
    if (
      this.configured
        .get(key.dataset)!
        .during(from, until)
        .some(({ state }) => !state)
    )
      return true;
    if (key.kind !== "chunk") return false;
    const array = key.array!;
    const isOutside = this.rows
      .get(array)!
      .during(from, until)
      .some(({ state }) => key.row >= state);
    return (
      isOutside ||
      this.#isPossible(
        key,
        array,
        filesOf(key).map(() => ABSENT),
        from,
        until,
      )
    );
  }

  #answered(seen: Observation, key: ChaosKey): Verdict {
    const { from, until, versions, coding } = seen;
    const { array } = key;
    const isConfigured = this.configured
      .get(key.dataset)!
      .during(from, until)
      .some(({ state }) => state);
    if (!isConfigured) return wrong(seen, key, "an answer of a dataset that is not configured");
    if (key.kind === "document") return this.#documentAnswered(seen, key);
    const rows = this.rows.get(array!)!.during(from, until);
    if (rows.every(({ state }) => key.row >= state)) return wrong(seen, key, "a chunk outside of the array");
    if (coding !== undefined && key.dataset === VISITOR_DATASET) {
      const codings = this.coding.during(from, until);
      if (codings.every(({ state }) => state !== coding))
        return wrong(seen, key, `encoded with ${coding}, expected ${codings.map(({ state }) => state)}`);
    }
    if (versions === undefined || this.#isPossible(key, array!, versions, from, until)) return RIGHT;
    const truth = filesOf(key).map((file) =>
      this.file(array!, file)
        .during(from - 5_000, until)
        .map((span) => spanText(span, from))
        .join(" "),
    );
    return wrong(seen, key, `versions ${versions.join(" ")}, expected ${truth.join("; ")}`);
  }

  #documentAnswered(seen: Observation, key: ChaosKey): Verdict {
    for (const [i, rows] of (seen.versions ?? []).entries()) {
      const array = key.array ?? growing(key.dataset)[i]!;
      const possible = this.rows.get(array)!.during(seen.from, seen.until);
      if (!possible.some(({ state }) => state === rows))
        return wrong(seen, key, `${rows} rows, expected ${possible.map(({ state }) => state)}`);
    }
    return RIGHT;
  }

  /** Whether the files were in these versions at one moment, all at once. */
  #isPossible(
    key: ChaosKey,
    array: ChaosArray,
    versions: readonly number[],
    from: number,
    until: number,
  ): boolean {
    let moments: readonly { readonly from: number; readonly until: number }[] = [{ from, until }];
    for (const [i, file] of filesOf(key).entries()) {
      const spans = this.file(array, file)
        .during(from, until)
        .filter(({ state }) => state === versions[i]);
      moments = moments.flatMap((moment) =>
        spans
          .map((span) => ({
            from: Math.max(span.from, moment.from),
            until: Math.min(span.until, moment.until),
          }))
          .filter((both) => both.from <= both.until),
      );
    }
    return moments.length > 0;
  }
}

/** Arrays of a dataset whose length changes. */
export function growing(dataset: string): readonly ChaosArray[] {
  return CHAOS_ARRAYS.filter((array) => array.dataset === dataset && array.fewestRows !== undefined);
}

/** What workers die of is tried again and again, each time until a limit. */
function isSlow({ status, from, until }: Observation, { dataset }: ChaosKey): boolean {
  return status !== 0 && dataset !== POISON_DATASET && until - from > SLOWEST_MS;
}

function failed(seen: Observation, key: ChaosKey, trouble: string): Verdict {
  return { kind: "failed", trouble, problem: `${key.url}: ${trouble} ${seen.detail ?? ""}`.trim() };
}

function wrong(seen: Observation, key: ChaosKey, problem: string): Verdict {
  const took = (seen.until - seen.from).toFixed(0);
  return { kind: "wrong", problem: `${key.url} (${seen.status}, ${took} ms): ${problem}` };
}

/** Times relative to the request. */
function spanText({ state, from, until }: Span<number>, zero: number): string {
  return `${state} from ${(from - zero).toFixed(0)} to ${(until - zero).toFixed(0)} ms`;
}

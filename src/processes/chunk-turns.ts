import type { ChunkOutcome } from "../pool/chunk-task.js";
import type { TurnFromProcess, TurnToProcess } from "./process-message.js";

/** Who makes which chunk when: so many at a time over all processes, first come first served, each chunk once. */
export interface ChunkTurns {
  /** Takes a message of a member. Never throws. */
  receive(member: TurnMember, message: TurnFromProcess): void;
  /** The member has ended: others make what they wait for and it was about to make. */
  leave(member: TurnMember): void;
  readonly stats: { readonly making: number; readonly waiting: number };
}

/** A process that makes chunks. One object for as long as it lives. */
export interface TurnMember {
  send(message: TurnToProcess): void;
}

export interface ChunkTurnsOptions {
  /** Chunks that are made at a time, over all members. */
  readonly slots: number;
  /** The same in one member. */
  readonly slotsPerMember: number;
  /** How long members that come late are given what was made. Default 1,000. */
  readonly sharedForMs?: number;
}

/**
 * Until what one process has put into the cache is there for all, which takes it a transaction. Longer than that nothing is
 * won, and what is shared is kept in memory meanwhile.
 */
const SHARED_FOR_MS = 1_000;

/** One chunk, from the first question to when it is in the cache. */
interface Flight {
  readonly key: string;
  /** By this the oldest of several is found. */
  readonly order: number;
  /** Who wait for it to be made; those who would make it, too. */
  askers: Asker[];
  state: "waiting" | "making" | "made";
  maker: Asker | undefined;
  /** The maker was asked for what comes of it and has not answered yet. */
  isAsked: boolean;
  /** Who have what came of it: who asks again wants another. */
  readonly given: Set<TurnMember>;
}

interface Asker {
  readonly member: TurnMember;
  readonly id: number;
}

/** What is known of a member. */
interface Seat {
  making: number;
  /** In the order they were asked for. What is no longer waiting is passed over. */
  readonly queue: Set<Flight>;
  /** By the member's id: where it waits. */
  readonly asks: Map<number, Flight>;
  /** By the member's id: what it makes, or made just now. */
  readonly makes: Map<number, Flight>;
}

/** Turns without members; one joins with its first message. */
export function createChunkTurns(options: ChunkTurnsOptions): ChunkTurns {
  const { slots, slotsPerMember, sharedForMs = SHARED_FOR_MS } = options;
  const seats = new Map<TurnMember, Seat>();
  /** The newest flight of each key. */
  const flights = new Map<string, Flight>();
  let making = 0;
  let flightCount = 0;

  function seatOf(member: TurnMember): Seat {
    const seat = seats.get(member) ?? { making: 0, queue: new Set(), asks: new Map(), makes: new Map() };
    seats.set(member, seat);
    return seat;
  }

  function ask(asker: Asker, key: string): void {
    const flight = joinable(key, asker.member) ?? createFlight(key);
    const { asks, queue } = seatOf(asker.member);
    flight.askers.push(asker);
    asks.set(asker.id, flight);
    if (flight.state === "waiting") queue.add(flight);
    else askMaker(flight);
  }

  function joinable(key: string, member: TurnMember): Flight | undefined {
    const flight = flights.get(key);
    return flight?.given.has(member) || (flight?.state === "made" && flight.maker?.member === member)
      ? undefined
      : flight;
  }

  function createFlight(key: string): Flight {
    const flight: Flight = {
      key,
      order: flightCount++,
      askers: [],
      state: "waiting",
      maker: undefined,
      isAsked: false,
      given: new Set(),
    };
    flights.set(key, flight);
    return flight;
  }

  function askMaker(flight: Flight): void {
    const { maker, isAsked } = flight;
    if (isAsked || maker === undefined) return;
    flight.isAsked = true;
    maker.member.send({ kind: "share", id: maker.id });
  }

  function made(member: TurnMember, id: number, outcome: ChunkOutcome | undefined): void {
    const flight = seats.get(member)?.makes.get(id);
    if (flight === undefined) return;
    const isFirst = flight.state === "making";
    if (isFirst) {
      flight.state = "made";
      endTurn(member);
      setTimeout(() => forget(flight, member, id), sharedForMs).unref();
    }
    if (outcome !== undefined) give(flight, outcome);
    // Not known any more, or it was asked for in the moment in which this was sent: that answer is still to come.
    else if (!isFirst) askAgain(flight);
  }

  function give(flight: Flight, outcome: ChunkOutcome): void {
    flight.isAsked = false;
    for (const { member, id } of flight.askers.splice(0)) {
      seats.get(member)?.asks.delete(id);
      flight.given.add(member);
      member.send({ kind: "outcome", id, outcome });
    }
  }

  /** Nothing came of it for those who wait: they ask as if for the first time. */
  function askAgain(flight: Flight): void {
    drop(flight);
    for (const asker of flight.askers.splice(0)) ask(asker, flight.key);
  }

  function forget(flight: Flight, member: TurnMember, id: number): void {
    seats.get(member)?.makes.delete(id);
    if (flight.isAsked) {
      askAgain(flight);
      pump();
    } else drop(flight);
  }

  function drop(flight: Flight): void {
    if (flights.get(flight.key) === flight) flights.delete(flight.key);
  }

  function decline(member: TurnMember, id: number): void {
    const seat = seatOf(member);
    const asked = seat.asks.get(id);
    if (asked !== undefined) {
      seat.asks.delete(id);
      asked.askers = asked.askers.filter((asker) => asker.member !== member || asker.id !== id);
      if (asked.askers.length === 0 && asked.state === "waiting") drop(asked);
      return;
    }
    const flight = seat.makes.get(id);
    if (flight?.state !== "making") return;
    seat.makes.delete(id);
    endTurn(member);
    askAgain(flight);
  }

  function endTurn(member: TurnMember): void {
    making--;
    seatOf(member).making--;
  }

  /** Gives turns while there are any to give. */
  function pump(): void {
    while (making < slots) {
      const next = nextTurn();
      if (next === undefined) return;
      const { member, seat, flight } = next;
      const maker = flight.askers.find((asker) => asker.member === member) as Asker;
      flight.askers = flight.askers.filter((asker) => asker !== maker);
      flight.maker = maker;
      flight.state = "making";
      seat.asks.delete(maker.id);
      seat.makes.set(maker.id, flight);
      seat.making++;
      making++;
      member.send({ kind: "turn", id: maker.id });
      if (flight.askers.length > 0) askMaker(flight);
    }
  }

  /** The oldest of what those wait for who may make one more. */
  function nextTurn(): { member: TurnMember; seat: Seat; flight: Flight } | undefined {
    let oldest: { member: TurnMember; seat: Seat; flight: Flight } | undefined;
    for (const [member, seat] of seats) {
      if (seat.making >= slotsPerMember) continue;
      const flight = headOf(member, seat);
      if (flight !== undefined && flight.order < (oldest?.flight.order ?? Number.POSITIVE_INFINITY)) {
        oldest = { member, seat, flight };
      }
    }
    return oldest;
  }

  function headOf(member: TurnMember, { queue }: Seat): Flight | undefined {
    for (const flight of queue) {
      if (flight.state === "waiting" && flight.askers.some((asker) => asker.member === member)) return flight;
      queue.delete(flight);
    }
    return undefined;
  }

  return {
    receive(member, message) {
      if (message.kind === "ask") ask({ member, id: message.id }, message.key);
      else if (message.kind === "made") made(member, message.id, message.outcome);
      else decline(member, message.id);
      pump();
    },
    leave(member) {
      const seat = seats.get(member);
      if (seat === undefined) return;
      for (const id of [...seat.asks.keys()]) decline(member, id);
      making -= seat.making;
      seats.delete(member);
      for (const flight of seat.makes.values()) askAgain(flight);
      pump();
    },
    get stats() {
      const waiting = [...seats.values()].reduce((sum, { asks }) => sum + asks.size, 0);
      return { making, waiting };
    },
  };
}

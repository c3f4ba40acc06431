import fc from "fast-check";
import t from "tap";
import type { ChunkOutcome } from "../../src/pool/chunk-task.js";
import { createChunkTurns, type TurnMember } from "../../src/processes/chunk-turns.js";
import type { TurnToProcess } from "../../src/processes/process-message.js";

interface Recorder extends TurnMember {
  /** What it was told since it was last asked, as `kind id`. */
  told(): string[];
}

function createMember(): Recorder {
  const messages: TurnToProcess[] = [];
  return {
    send: (message) => void messages.push(message),
    told: () => messages.splice(0).map(({ kind, id }) => `${kind} ${id}`),
  };
}

const outcome: ChunkOutcome = {
  status: "encoded",
  checksum: 0,
  bytes: new Uint8Array(1),
  stamp: "s",
  timings: { read: 0, decode: 0, encode: 1 },
};

t.test("turns are given in the order they were asked for, as many as there are slots", async (t) => {
  const turns = createChunkTurns({ slots: 2, slotsPerMember: 2 });
  const [a, b] = [createMember(), createMember()];
  turns.receive(a, { kind: "ask", id: 1, key: "w" });
  turns.receive(b, { kind: "ask", id: 1, key: "x" });
  turns.receive(b, { kind: "ask", id: 2, key: "y" });
  turns.receive(a, { kind: "ask", id: 2, key: "z" });
  t.strictSame([a.told(), b.told()], [["turn 1"], ["turn 1"]]);
  t.strictSame(turns.stats, { making: 2, waiting: 2 });
  turns.receive(a, { kind: "made", id: 1 });
  t.strictSame([a.told(), b.told()], [[], ["turn 2"]], "the older one, whoever asked");
  turns.receive(b, { kind: "made", id: 1 });
  t.strictSame([a.told(), b.told()], [["turn 2"], []]);
});

t.test("a member has no more turns at a time than it may", async (t) => {
  const turns = createChunkTurns({ slots: 3, slotsPerMember: 1 });
  const [a, b] = [createMember(), createMember()];
  turns.receive(a, { kind: "ask", id: 1, key: "w" });
  turns.receive(a, { kind: "ask", id: 2, key: "x" });
  turns.receive(b, { kind: "ask", id: 1, key: "y" });
  t.strictSame([a.told(), b.told()], [["turn 1"], ["turn 1"]]);
  turns.receive(b, { kind: "ask", id: 2, key: "x" });
  turns.receive(b, { kind: "made", id: 1 });
  t.strictSame(
    [a.told(), b.told()],
    [[], ["turn 2", "share 2"]],
    "whoever of them may, makes what both wait for",
  );
});

t.test("what one makes is given to all who ask for it meanwhile, or a moment later", async (t) => {
  const turns = createChunkTurns({ slots: 1, slotsPerMember: 1 });
  const [a, b, c] = [createMember(), createMember(), createMember()];
  turns.receive(a, { kind: "ask", id: 1, key: "x" });
  turns.receive(b, { kind: "ask", id: 7, key: "x" });
  t.strictSame([a.told(), b.told()], [["turn 1", "share 1"], []]);
  turns.receive(a, { kind: "made", id: 1, outcome });
  t.strictSame([a.told(), b.told()], [[], ["outcome 7"]]);
  turns.receive(c, { kind: "ask", id: 9, key: "x" });
  t.strictSame([a.told(), c.told()], [["share 1"], []]);
  turns.receive(a, { kind: "made", id: 1, outcome });
  t.strictSame(c.told(), ["outcome 9"]);
});

t.test("the question for it may cross the answer", async (t) => {
  const turns = createChunkTurns({ slots: 1, slotsPerMember: 1 });
  const [a, b] = [createMember(), createMember()];
  turns.receive(a, { kind: "ask", id: 1, key: "x" });
  turns.receive(b, { kind: "ask", id: 1, key: "x" });
  t.strictSame(a.told(), ["turn 1", "share 1"]);
  turns.receive(a, { kind: "made", id: 1 });
  t.strictSame(b.told(), [], "still to come");
  turns.receive(a, { kind: "made", id: 1, outcome });
  t.strictSame(b.told(), ["outcome 1"]);
});

t.test("what the maker does not know any more is made by who asks", async (t) => {
  const turns = createChunkTurns({ slots: 1, slotsPerMember: 1 });
  const [a, b] = [createMember(), createMember()];
  turns.receive(a, { kind: "ask", id: 1, key: "x" });
  turns.receive(a, { kind: "made", id: 1 });
  turns.receive(b, { kind: "ask", id: 1, key: "x" });
  t.strictSame(a.told(), ["turn 1", "share 1"]);
  turns.receive(a, { kind: "made", id: 1 });
  t.strictSame(b.told(), ["turn 1"]);
});

t.test("who has had it and asks again wants another: the source may have changed", async (t) => {
  const turns = createChunkTurns({ slots: 1, slotsPerMember: 1 });
  const [a, b] = [createMember(), createMember()];
  turns.receive(a, { kind: "ask", id: 1, key: "x" });
  turns.receive(b, { kind: "ask", id: 1, key: "x" });
  turns.receive(a, { kind: "made", id: 1, outcome });
  a.told();
  b.told();
  turns.receive(b, { kind: "ask", id: 2, key: "x" });
  t.strictSame([a.told(), b.told()], [[], ["turn 2"]]);
  turns.receive(a, { kind: "ask", id: 2, key: "x" });
  t.strictSame([a.told(), b.told()], [[], ["share 2"]], "which may be that one");
});

t.test("it is shared for a moment only", async (t) => {
  const turns = createChunkTurns({ slots: 1, slotsPerMember: 1, sharedForMs: 10 });
  const [a, b, c] = [createMember(), createMember(), createMember()];
  turns.receive(a, { kind: "ask", id: 1, key: "x" });
  turns.receive(a, { kind: "made", id: 1 });
  turns.receive(c, { kind: "ask", id: 1, key: "x" });
  t.strictSame(a.told(), ["turn 1", "share 1"]);
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.strictSame(c.told(), ["turn 1"], "the maker did not answer in time");
  turns.receive(a, { kind: "made", id: 1, outcome });
  t.strictSame(c.told(), [], "and is too late now");
  turns.receive(c, { kind: "made", id: 1 });
  await new Promise((resolve) => setTimeout(resolve, 50));
  turns.receive(b, { kind: "ask", id: 1, key: "x" });
  t.strictSame(b.told(), ["turn 1"]);
});

t.test("a turn that is declined goes to the next, of the same chunk too", async (t) => {
  const turns = createChunkTurns({ slots: 1, slotsPerMember: 1 });
  const [a, b] = [createMember(), createMember()];
  turns.receive(a, { kind: "ask", id: 1, key: "x" });
  turns.receive(b, { kind: "ask", id: 1, key: "x" });
  turns.receive(a, { kind: "ask", id: 2, key: "y" });
  turns.receive(a, { kind: "decline", id: 2 });
  turns.receive(a, { kind: "decline", id: 1 });
  t.strictSame([a.told(), b.told()], [["turn 1", "share 1"], ["turn 1"]]);
  turns.receive(b, { kind: "made", id: 1 });
  t.strictSame(turns.stats, { making: 0, waiting: 0 });
  t.strictSame(a.told(), [], "what was declined before its turn is forgotten");
});

t.test("others take over from a member that has ended", async (t) => {
  const turns = createChunkTurns({ slots: 1, slotsPerMember: 1 });
  const [a, b] = [createMember(), createMember()];
  turns.receive(a, { kind: "ask", id: 1, key: "x" });
  turns.receive(a, { kind: "ask", id: 2, key: "y" });
  turns.receive(b, { kind: "ask", id: 1, key: "x" });
  turns.leave(a);
  t.strictSame(b.told(), ["turn 1"]);
  t.strictSame(turns.stats, { making: 1, waiting: 0 });
  turns.leave(b);
  t.strictSame(turns.stats, { making: 0, waiting: 0 });
});

/** Members that answer what they are told, in any order, and sometimes decline, forget or end. */
t.test("whatever happens, everybody gets an answer, and never are too many made at once", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 2 }),
      fc.array(fc.tuple(fc.nat(3), fc.nat(2), fc.nat(9)), { maxLength: 60 }),
      async (slots, slotsPerMember, steps) => {
        const turns = createChunkTurns({ slots, slotsPerMember });
        const members = [0, 1, 2].map(() => createActor(turns));
        for (const [action, which, luck] of steps) {
          const member = members[which] as Actor;
          if (action === 0) member.ask(`key ${luck % 3}`);
          else if (action === 1) member.answer(luck);
          else if (action === 2) member.forget();
          else if (luck === 0) members[which] = member.end();
          const making = members.map((one) => one.making());
          if (making.some((count) => count > slotsPerMember)) return false;
          if (making.reduce((sum, count) => sum + count) > slots) return false;
        }
        for (let round = 0; round < 400; round++) for (const member of members) member.answer(1);
        return members.every((member) => member.waiting() === 0) && turns.stats.waiting === 0;
      },
    ),
    { numRuns: 500 },
  );
});

interface Actor {
  ask(key: string): void;
  /** Answers one of the messages it has. */
  answer(luck: number): void;
  forget(): void;
  end(): Actor;
  making(): number;
  waiting(): number;
}

function createActor(turns: ReturnType<typeof createChunkTurns>): Actor {
  const inbox: TurnToProcess[] = [];
  const waiting = new Set<number>();
  const making = new Set<number>();
  const known = new Set<number>();
  let lastId = 0;
  const member: TurnMember = { send: (message) => void receive(message) };
  function receive(message: TurnToProcess): void {
    if (message.kind === "turn") making.add(message.id);
    if (message.kind === "outcome") waiting.delete(message.id);
    else inbox.push(message);
  }
  return {
    ask(key) {
      waiting.add(++lastId);
      turns.receive(member, { kind: "ask", id: lastId, key });
    },
    answer(luck) {
      const next = inbox.shift();
      if (next === undefined) return;
      const { id } = next;
      if (next.kind === "turn") {
        making.delete(id);
        waiting.delete(id);
        if (luck !== 0) known.add(id);
        turns.receive(member, luck === 0 ? { kind: "decline", id } : { kind: "made", id });
      } else {
        turns.receive(member, { kind: "made", id, ...(known.has(id) ? { outcome } : {}) });
      }
    },
    forget: () => known.clear(),
    end() {
      turns.leave(member);
      return createActor(turns);
    },
    making: () => making.size,
    waiting: () => waiting.size,
  };
}

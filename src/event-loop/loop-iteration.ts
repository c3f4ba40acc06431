/** Calls of {@link loopIteration} within one iteration after which it counts as another. */
const MAX_CALLS = 512;

let iteration = 0;
let calls = 0;
let isScheduled = false;

function endIteration(): void {
  iteration += 1;
  calls = 0;
  isScheduled = false;
}

/**
 * The number of the current iteration of the event loop. What is found out in an iteration holds for every request that
 * the loop received in it: they had all begun to arrive before. (With very many at once libuv polls again within an
 * iteration, so the number also goes up after {@link MAX_CALLS} calls.)
 */
export function loopIteration(): number {
  if (!isScheduled) {
    isScheduled = true;
    // Runs behind the phase in which sockets are read.
    setImmediate(endIteration);
  }
  if (++calls > MAX_CALLS) {
    iteration += 1;
    calls = 0;
  }
  return iteration;
}

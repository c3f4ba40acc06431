/** How often {@link turnOf} may be asked within one turn before it says that it is another. */
const MAX_ASKS = 512;

let turn = 0;
let asks = 0;
let isScheduled = false;

function endTurn(): void {
  turn += 1;
  asks = 0;
  isScheduled = false;
}

/**
 * The number of the current turn of the event loop. What is found out in a turn holds for every request that the loop
 * received in the same: they had all begun to arrive when the loop looked what there is to do. (With very many at once
 * libuv looks again within a turn: so the number goes up after {@link MAX_ASKS} asks, too.)
 */
export function turnOf(): number {
  if (!isScheduled) {
    isScheduled = true;
    // Runs behind the phase in which sockets are read.
    setImmediate(endTurn);
  }
  if (++asks > MAX_ASKS) {
    turn += 1;
    asks = 0;
  }
  return turn;
}

/** @typedef {{ items: ArrayLike<number | bigint>, first: number, length: number, inner: number }} Piece */
/** Sums items over an axis, in the pool: `items` in C order from `first` on, `inner` of them per step of the axis. @param {Piece} piece */
export default function sumPiece({ items, first, length, inner }) {
  const row = (/** @type {number} */ at) => Math.floor(at / (length * inner)) * inner;
  const begin = row(first);
  const totals = new Float64Array(2 * (row(first + items.length - 1) + inner - begin));
  for (let i = 0; i < items.length; i += 1) {
    const value = Number(items[i]);
    const at = row(first + i) + ((first + i) % inner) - begin;
    if (Number.isNaN(value)) continue;
    totals[2 * at] += value;
    totals[2 * at + 1] += 1;
  }
  return { begin, totals };
}

/** @typedef {{ items: ArrayLike<number>, latitudes: ArrayLike<number>, columns: number }} Maps */

/** Returns the mean of each map, weighted by the cosine of the latitude, in the pool. @param {Maps} maps Missing values are NaN. */
export default function weigh({ items, latitudes, columns }) {
  const weights = Array.from(latitudes, (latitude) => Math.cos((latitude * Math.PI) / 180));
  const size = weights.length * columns;
  return Float64Array.from({ length: items.length / size }, (_, map) => {
    let [sum, total] = [0, 0];
    for (let at = 0; at < size; at += 1) {
      const value = Number(items[map * size + at]);
      const weight = Number.isNaN(value) ? 0 : (weights[Math.floor(at / columns)] ?? 0);
      if (weight !== 0) sum += value * weight;
      total += weight;
    }
    return sum / total;
  });
}

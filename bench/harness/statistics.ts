/** The median: for an even number of values, the mean of the middle two. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Interpolates between two values. @param share 0–1 */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const position = (sorted.length - 1) * share
  const below = sorted[Math.floor(position)]
  const above = sorted[Math.ceil(position)]
  if (below === undefined || above === undefined) throw new Error('No values were measured.')
  return below + (above - below) * (position % 1)
}

/** The spread of the values as a share of their median: a measure of how uncertain a ratio to that median is. */
export function spread(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / median(values)
}

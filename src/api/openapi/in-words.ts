const UNITS = [
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

/** A duration as the documents write it: 500 ms, 30 s, 2 min, 24 h. */
export function durationInWords(ms: number): string {
  const unit = UNITS.find(([size]) => ms >= size && ms % size === 0)
  return unit ? `${(ms / unit[0]).toLocaleString('en')} ${unit[1]}` : `${ms} ms`
}

/** A retry schedule as the documents write it: 1 s, 5 s and 30 s. */
export function delaysInWords(delaysMs: readonly number[]): string {
  return new Intl.ListFormat('en-GB').format(delaysMs.map(durationInWords))
}

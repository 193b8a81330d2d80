const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** `1.5 MiB` of a number of bytes. */
export function sizeText(bytes: number): string {
  const unit = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** unit
  return `${value.toLocaleString(undefined, { maximumFractionDigits: value < 10 && unit > 0 ? 1 : 0 })} ${UNITS[unit]}`
}

import type { Language } from '../i18n/languages.ts'

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** `1.5 MiB` of a number of bytes, as the language writes numbers. */
export function sizeText(bytes: number, language: Language): string {
  const unit = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** unit
  return `${value.toLocaleString(language, { maximumFractionDigits: value < 10 && unit > 0 ? 1 : 0 })} ${UNITS[unit]}`
}

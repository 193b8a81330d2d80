import { type Figure, type Floor, short, type Unit } from './figure.ts'

const HEADINGS = ['', 'what', 'store', 'reference', 'ours', 'unit', 'ratio', 'target', 'noise']

/** The figures as a table for a terminal, each followed by its notes. */
export function tableOf(figures: readonly Figure[]): string {
  const rows = figures.map(rowOf)
  const widths = HEADINGS.map((heading, column) => Math.max(heading.length, ...rows.map(row => row[column]!.length)))
  const lineOf = (cells: readonly string[]) => cells.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')
  const lines = [lineOf(HEADINGS), widths.map(width => '─'.repeat(width)).join('  ')]
  figures.forEach((figure, index) => {
    lines.push(lineOf(rows[index]!).trimEnd(), ...figure.notes.map(note => `   ${note}`))
  })
  return lines.join('\n')
}

function rowOf({ name, store, unit, reference, ours, ratio, floor, met, noise }: Figure): string[] {
  return [
    met === null ? ' ' : met ? '✓' : '✗',
    reference ? `${name} / ${reference.what}` : name,
    store,
    reference ? short(reference.median) : '',
    short(ours.median),
    unit,
    ratio?.toFixed(2) ?? '',
    floor === null ? '' : floorText(floor, unit),
    noise === null ? '' : `±${Math.round(noise * 50)}%`,
  ]
}

function floorText(floor: Floor, unit: Unit): string {
  if (floor.kind === 'limit') return `≤ ${short(floor.value)} ${unit}`
  return `${floor.kind === 'at least' ? '≥' : '≤'} ${floor.ratio.toFixed(2)}`
}

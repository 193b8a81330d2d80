import type { Duration, Finding, Findings } from './findings.ts'

const ABSENT = '(not seen)'

/** What one side showed and the other did not. */
export interface Difference {
  check: string
  fact: string
  simulator: string
  whatsapp: string
}

export interface Report {
  pombal: string
  baileys: string
  /** Anything but `live`: what is called WhatsApp is a simulator too. */
  mode: 'live' | 'dry-run' | 'simulated'
  at: string
  /** False: it broke off, and what follows is missing. */
  complete: boolean
  differences: Difference[]
  same: Finding[]
  /** Of WhatsApp; for information. */
  durations: Duration[]
}

/** Every fact that only one side has, or that is another one there. Checks that were not reached are not compared. */
export function compare(simulator: Findings, whatsapp: Findings): Pick<Report, 'differences' | 'same'> {
  const key = ({ check, fact }: Finding) => `${check}: ${fact}`
  const reached = new Set(whatsapp.list.map(({ check }) => check))
  const expected = simulator.list.filter(({ check }) => reached.has(check))
  const seen = new Map(whatsapp.list.map(finding => [key(finding), finding]))
  const known = new Set(expected.map(key))
  const differences: Difference[] = []
  const same: Finding[] = []
  for (const finding of expected) {
    const there = seen.get(key(finding))?.seen ?? ABSENT
    const { check, fact } = finding
    if (there === finding.seen) same.push(finding)
    else differences.push({ check, fact, simulator: finding.seen, whatsapp: there })
  }
  for (const [name, { check, fact, seen: there }] of seen) {
    if (!known.has(name)) differences.push({ check, fact, simulator: ABSENT, whatsapp: there })
  }
  return { differences, same }
}

export function toText(report: Report): string {
  const { pombal, baileys, mode, at, complete, differences, same, durations } = report
  const lines = [
    `Live check of Pombal ${pombal}, Baileys ${baileys}, ${at}`,
    mode === 'live' ? 'WhatsApp against the simulator.' : 'DRY RUN: a simulator against the simulator, not WhatsApp.',
    ...(complete ? [] : ['It BROKE OFF: the last check is incomplete, and those after it are missing.']),
    '',
    `${differences.length} differences, ${same.length} facts are the same.`,
    '',
    ...differences.flatMap(({ check, fact, simulator, whatsapp }) => [
      `✗ ${check}: ${fact}`,
      `    simulator  ${simulator}`,
      `    WhatsApp   ${whatsapp}`,
    ]),
    ...same.map(({ check, fact, seen }) => `✓ ${check}: ${fact}: ${seen}`),
    '',
    'How long it took WhatsApp:',
    ...durations.map(({ check, fact, ms }) => `  ${check}: ${fact}: ${ms} ms`),
  ]
  return `${lines.join('\n')}\n`
}

/** @throws Error when any of `secrets` is in the text: then it is not written anywhere */
export function checkRedacted(text: string, secrets: Iterable<string>): void {
  for (const secret of secrets) {
    if (secret && text.includes(secret)) throw new Error('The report would hold something private: it is not written.')
  }
}

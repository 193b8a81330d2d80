import type { Duration, Finding, Findings } from './findings.ts'

const ABSENT = '(not seen)'

/** An observation that differs between the simulator and WhatsApp. */
export interface Difference {
  check: string
  fact: string
  simulator: string
  whatsapp: string
}

export interface Report {
  pombal: string
  baileys: string
  /** In the modes other than `live`, "WhatsApp" is a simulator too. */
  mode: 'live' | 'dry-run' | 'simulated'
  at: string
  /** False if the check ended early and results are missing. */
  complete: boolean
  differences: Difference[]
  same: Finding[]
  /** Measured on WhatsApp, for information only. */
  durations: Duration[]
}

/** Lists the facts that differ or that only one side has. Checks that were not reached are not compared. */
export function compare(simulator: Findings, whatsapp: Findings): Pick<Report, 'differences' | 'same'> {
  const key = ({ check, fact }: Finding) => `${check}: ${fact}`
  const reached = new Set(whatsapp.list.map(({ check }) => check))
  const expected = simulator.list.filter(({ check }) => reached.has(check))
  const seen = new Map(whatsapp.list.map(finding => [key(finding), finding]))
  const known = new Set(expected.map(key))
  const differences: Difference[] = []
  const same: Finding[] = []
  for (const finding of expected) {
    const onWhatsapp = seen.get(key(finding))?.seen ?? ABSENT
    const { check, fact } = finding
    if (onWhatsapp === finding.seen) same.push(finding)
    else differences.push({ check, fact, simulator: finding.seen, whatsapp: onWhatsapp })
  }
  for (const [name, { check, fact, seen: onWhatsapp }] of seen) {
    if (!known.has(name)) differences.push({ check, fact, simulator: ABSENT, whatsapp: onWhatsapp })
  }
  return { differences, same }
}

export function toText(report: Report): string {
  const { pombal, baileys, mode, at, complete, differences, same, durations } = report
  const lines = [
    `Live check of Pombal ${pombal}, Baileys ${baileys}, ${at}`,
    mode === 'live'
      ? 'WhatsApp compared with the simulator.'
      : 'DRY RUN: two simulators compared with each other, not WhatsApp.',
    ...(complete ? [] : ['The check ENDED EARLY: the last check is incomplete, and later checks are missing.']),
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

/** @throws Error if the text contains any of `secrets`. It must then not be written anywhere. */
export function checkRedacted(text: string, secrets: Iterable<string>): void {
  for (const secret of secrets) {
    if (secret && text.includes(secret)) throw new Error('The report would contain private data, and was not written.')
  }
}

/** One observation, without any number, name, key or message text. */
export interface Finding {
  check: string
  fact: string
  seen: string
}

/** How long something took. Reported, but not compared. */
export interface Duration {
  check: string
  fact: string
  ms: number
}

/** The results of one run. */
export class Findings {
  readonly list: Finding[] = []
  readonly durations: Duration[] = []

  note(check: string, fact: string, seen: string | boolean): void {
    this.list.push({ check, fact, seen: typeof seen === 'boolean' ? (seen ? 'yes' : 'no') : seen })
  }

  took(check: string, fact: string, sinceMs: number): void {
    this.durations.push({ check, fact, ms: Math.round(performance.now() - sinceMs) })
  }
}

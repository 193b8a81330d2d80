import { describe, expect, test } from 'vitest'
import { type Alert, alertChanges, DEFAULT_ALERT_DELAYS, isNothing, type Problem, SOLVED_AFTER_MS } from './alert.ts'

const MINUTE_MS = 60_000
const NOW = 100 * MINUTE_MS
const DOWN: Problem = { rule: 'number_down', subject: 'inst_1', since: NOW - MINUTE_MS, detail: 'Cut.' }
const NONE = { noticed: [], reworded: [], began: [], gone: [], returned: [], ended: [], dropped: [] }

function alert(changes: Partial<Alert> = {}): Alert {
  return { ...DOWN, id: 'alt_1', since: NOW, beganAt: null, goneSince: null, endedAt: null, ...changes }
}

describe('changes of alerts', () => {
  test('a new problem is noticed, and announced at once only if it lasted long enough', () => {
    const noticed = (problem: Problem) => alertChanges([], [problem], DEFAULT_ALERT_DELAYS, NOW).noticed
    expect(noticed(DOWN)).toEqual([{ ...DOWN, beganAt: null }])
    const old = { ...DOWN, since: NOW - 5 * MINUTE_MS }
    expect(noticed(old)).toEqual([{ ...old, beganAt: NOW }])
    expect(noticed({ ...DOWN, rule: 'linking_lost', since: null })).toMatchObject([{ since: NOW, beganAt: NOW }])
  })

  test('a problem without a known beginning counts from the time when it was noticed', () => {
    const open = [alert({ rule: 'webhook_failing' })]
    const problem: Problem = { ...DOWN, rule: 'webhook_failing', since: null }
    const at = (now: number) => alertChanges(open, [problem], DEFAULT_ALERT_DELAYS, now)
    expect(at(NOW + 5 * MINUTE_MS - 1)).toEqual(NONE)
    expect(at(NOW + 5 * MINUTE_MS)).toEqual({ ...NONE, began: ['alt_1'] })
  })

  test('an open alert, announced or not, gets the present detail of its problem', () => {
    const cut = { ...DOWN, since: NOW, detail: 'Banned.' }
    for (const open of [alert(), alert({ beganAt: NOW })]) {
      const reworded = [{ id: 'alt_1', detail: 'Banned.' }]
      expect(alertChanges([open], [cut], DEFAULT_ALERT_DELAYS, NOW)).toEqual({ ...NONE, reworded })
      expect(alertChanges([{ ...open, ...cut }], [cut], DEFAULT_ALERT_DELAYS, NOW)).toEqual(NONE)
    }
  })

  test('a rule that is switched off announces nothing and drops its open alerts', () => {
    const delays = { ...DEFAULT_ALERT_DELAYS, number_down: null }
    expect(isNothing(alertChanges([], [DOWN], delays, NOW))).toBe(true)
    for (const open of [alert(), alert({ beganAt: NOW }), alert({ beganAt: NOW, goneSince: NOW })])
      expect(alertChanges([open], [DOWN], delays, NOW)).toEqual({ ...NONE, dropped: ['alt_1'] })
  })

  test('a problem is solved when it has been gone for a while without interruption', () => {
    const began = alert({ beganAt: NOW })
    const at = (open: Alert, problems: Problem[], now: number) =>
      alertChanges([open], problems, DEFAULT_ALERT_DELAYS, now)
    expect(at(began, [], NOW + 1)).toEqual({ ...NONE, gone: ['alt_1'] })
    const gone = { ...began, goneSince: NOW + 1 }
    expect(at(gone, [], NOW + SOLVED_AFTER_MS)).toEqual(NONE)
    expect(at(gone, [DOWN], NOW + SOLVED_AFTER_MS)).toEqual({ ...NONE, returned: ['alt_1'] })
    expect(at(gone, [], NOW + 1 + SOLVED_AFTER_MS)).toEqual({ ...NONE, ended: ['alt_1'] })
  })

  test('a problem is announced, and counts as solved, although the clock was set back by an hour', () => {
    const later = NOW + 60 * MINUTE_MS
    const at = (open: Alert, problems: Problem[]) => alertChanges([open], problems, DEFAULT_ALERT_DELAYS, NOW)
    expect(at(alert({ since: later }), [DOWN])).toEqual({ ...NONE, began: ['alt_1'] })
    expect(at(alert({ beganAt: later, goneSince: later }), [])).toEqual({ ...NONE, ended: ['alt_1'] })
  })

  test('a problem that ends before it is announced is forgotten immediately', () => {
    expect(alertChanges([alert()], [], DEFAULT_ALERT_DELAYS, NOW)).toEqual({ ...NONE, ended: ['alt_1'] })
  })

  test('problems of different instances and rules are different', () => {
    const open = [alert({ beganAt: NOW })]
    const others: Problem[] = [DOWN, { ...DOWN, subject: 'inst_2' }, { ...DOWN, rule: 'linking_lost' }]
    expect(alertChanges(open, others, DEFAULT_ALERT_DELAYS, NOW).noticed).toHaveLength(2)
  })
})

import { describe, expect, test } from 'vitest'
import type { AuditEntry } from '../../../store/audit/audit.ts'
import { FailedSignIns } from './failed-sign-ins.ts'

const HOUR_MS = 60 * 60_000

function recorder() {
  const clock = { now: 1_700_000_000_000 }
  const entries: AuditEntry[] = []
  const append = async (entry: AuditEntry) => {
    entries.push(entry)
    return { seq: entries.length, digest: '' }
  }
  return { clock, entries, failures: new FailedSignIns({ append }, () => clock.now) }
}

describe('failed sign-ins', () => {
  test('of one network are recorded once in ten minutes, with the number of the others', async () => {
    const { clock, entries, failures } = recorder()
    for (let count = 0; count < 5; count += 1) await failures.record(`2001:db8::${count}`)
    clock.now += 10 * 60_000
    await failures.record('2001:db8::1')
    expect(entries.map(({ details }) => details['notRecordedBefore'])).toEqual([0, 4])
  })

  test('of any number of networks are recorded at most 60 times an hour', async () => {
    const { clock, entries, failures } = recorder()
    for (let hour = 0; hour < 2; hour += 1) {
      for (let count = 0; count < 200; count += 1) await failures.record(`192.0.2.${count}`)
      expect(entries).toHaveLength(60 * (hour + 1))
      clock.now += HOUR_MS
    }
    expect(entries[60]!.details['notRecordedBefore']).toBe(140)
  })
})

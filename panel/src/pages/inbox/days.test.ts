import { expect, onTestFinished, test, vi } from 'vitest'
import { dayOf } from './days.ts'

test('the days of a long conversation need one date format', () => {
  const create = vi.spyOn(Intl, 'DateTimeFormat')
  const localised = vi.spyOn(Date.prototype, 'toLocaleDateString')
  onTestFinished(() => void vi.restoreAllMocks())
  const days = Array.from({ length: 100 }, (_, hour) => dayOf(Date.UTC(2026, 10, 24, hour), 'America/Sao_Paulo'))
  expect([days[0], days[3], days[99]]).toEqual(['2026-11-23', '2026-11-24', '2026-11-28'])
  expect([create.mock.calls.length, localised.mock.calls.length]).toEqual([1, 0])
})

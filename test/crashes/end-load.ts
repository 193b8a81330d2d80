import { expect } from 'vitest'
import type { Facts } from '../rig/facts.ts'
import type { LoadHarness } from '../rig/harness.ts'
import { judge } from '../rig/judge.ts'

/** Ends the load once every instance works again, and expects that nothing was lost, duplicated or reordered in either direction. */
export async function endLoad(harness: LoadHarness): Promise<Facts> {
  await harness.untilRecovered()
  await harness.stopLoad()
  await harness.untilQuiet()
  const facts = await harness.collectFacts()
  expect(judge(facts)).toMatchObject({ violations: [], lostIncoming: [] })
  expect([...(await harness.listUndelivered()), ...(await harness.replay())]).toEqual([])
  return facts
}

import { expect, it } from 'vitest'
import { DelayLine } from './delay-line.ts'

it('steps run in their order, even when the delay has become shorter', async () => {
  const line = new DelayLine()
  const ran: string[] = []
  const begun = Date.now()
  line.add(0, () => ran.push('at once'))
  line.add(30, () => ran.push('late'))
  const done = new Promise<void>(resolve => {
    line.add(0, () => {
      ran.push('next')
      resolve()
    })
  })
  expect(ran).toEqual(['at once'])
  await done
  expect(ran).toEqual(['at once', 'late', 'next'])
  expect(Date.now() - begun).toBeGreaterThanOrEqual(29)
})

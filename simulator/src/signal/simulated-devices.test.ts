import { expect, it } from 'vitest'
import { Records } from './records.ts'
import { SimulatedDevices } from './simulated-devices.ts'

it('the devices of a scope keep the latest 5,000 sessions, and that of the phone with its own client', () => {
  const devices = new SimulatedDevices(Buffer.alloc(32), new Records(null, 'a'))
  devices.restoreSignal('888/session/888.1', '{}')
  for (let n = 0; n < 6_000; n++) devices.restoreSignal(`${n}/session/888.1`, '{}')
  const kept = (number: string) => devices.hasSession(number, '888', 1)
  expect(['888', '999', '1000', '5999'].map(kept)).toEqual([true, false, true, true])
})

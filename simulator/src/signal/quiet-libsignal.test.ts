import { randomBytes } from 'node:crypto'
import { expect, it, vi } from 'vitest'
import { quietLibsignal } from './quiet-libsignal.ts'
import { SignalDevice } from './signal-device.ts'

function createDevice(): SignalDevice {
  const stored = new Map<string, string>()
  return new SignalDevice(randomBytes(32), { get: key => stored.get(key), put: (key, value) => stored.set(key, value) })
}

it('libsignal prints nothing, because it prints keys; other output is unchanged', async () => {
  const print = vi.spyOn(console, 'info').mockImplementation(() => undefined)
  const openTwice = async () => {
    const device = createDevice()
    for (let n = 0; n < 2; n++) await device.openSession('5.0', createDevice().bundle())
  }
  await openTwice()
  expect(print).toHaveBeenCalled()
  quietLibsignal()
  print.mockClear()
  await openTwice()
  console.info('ours')
  expect(print.mock.calls).toEqual([['ours']])
})

import { expect, test, vi } from 'vitest'
import { ConnectionPacing } from '../../../../src/whatsapp/connection/connection-pacing.ts'
import { until } from '../../../until.ts'
import { WhatsappHarness } from '../harness.ts'

/** A person waits for these links, while after a restart thousands of instances wait to reconnect. */

const idle = () => ({ idle: 1, active: 0, utilization: 0 })

/** Many callers wait for their turns, at intervals of 250 ms, for longer than a test. */
function busyPacing() {
  const pacing = new ConnectionPacing(idle, 10)
  const stopped = new AbortController()
  for (let n = 0; n < 2_000; n++) void pacing.take({}, stopped.signal)
  return { pacing, [Symbol.dispose]: () => stopped.abort() }
}

test('a number is linked, and connects for the first time, before other instances reconnect', async () => {
  using busy = busyPacing()
  const take = vi.spyOn(busy.pacing, 'take')
  await using harness = await WhatsappHarness.open()
  const id = await harness.createInstance()
  await harness.connect(id, { scan: false, pacing: busy.pacing })
  await harness.store.connections.requestConnect(id, null)
  await until('the turn to be asked for', () => take.mock.calls.length > 0)
  // Whoever waits for the code sees at once that it is requested.
  expect((await harness.store.connections.find(id))?.cause).toMatch(/asking_for_code|scan_qr_code/)
  await harness.network.scanQr((await harness.reaches(id, 'linking')).qr as string)
  await harness.reaches(id, 'connected')
})

test('a number that waits to reconnect is logged out before other instances reconnect', async () => {
  using busy = busyPacing()
  const take = vi.spyOn(busy.pacing, 'take')
  await using harness = await WhatsappHarness.open()
  const { id, connection } = await harness.link()
  await harness.stop(connection)
  await harness.connect(id, { scan: false, pacing: busy.pacing })
  await until('it to wait', () => take.mock.calls.length > 0)
  await harness.store.connections.requestLogout(id)
  expect(await harness.reaches(id, 'logged_out')).toMatchObject({ cause: 'logged_out_as_asked' })
})

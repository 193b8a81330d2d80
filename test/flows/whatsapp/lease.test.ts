import { expect, test } from 'vitest'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

const CONTACT = '5511987654321'

/** The credentials of the instance in the store. */
async function storedCredentials(harness: WhatsappHarness, id: string): Promise<string> {
  const rows = await harness.store.credentials.get(id, 'creds', ['creds'])
  return Buffer.from(rows.get('creds') ?? []).toString()
}

test('a key write after the lease has moved on is refused, and the socket ends', async () => {
  await using harness = await WhatsappHarness.open()
  let lost = 0
  const { id, phone } = await harness.link({
    onLeaseLost: () => {
      lost += 1
    },
  })
  const lease = await harness.lease(id)
  await harness.store.leases.release(lease)
  const [next] = await harness.store.leases.acquire('another', 1)
  expect(next?.epoch).toBe(lease.epoch + 1)
  const before = await storedCredentials(harness, id)
  const { opened } = harness.line

  // Decryption changes the Signal session, and WhatsApp is notified only after the session is stored.
  await harness.network.writeAs({ from: CONTACT, to: phone, text: 'Who has it?' })
  await until('the loss to be noticed', () => lost === 1)
  await until('the socket to end', () => harness.line.sockets === 0)
  // Every write that was requested before this one has been made or refused.
  await harness.store.leases.renew('another')
  expect(await storedCredentials(harness, id)).toBe(before)
  expect(await harness.received(id)).toEqual([])

  // WhatsApp still holds it for the present owner of the instance.
  const owner = await harness.connect(id, { lease: next! })
  await until('the message', async () => (await harness.received(id)).length === 1)
  expect(harness.line.opened).toBe(opened + 1)
  expect(lost).toBe(1)
  await harness.stop(owner)
})

test('a node that was suspended sends and opens nothing until its lease is renewed', async () => {
  await using harness = await WhatsappHarness.open()
  let renewed = true
  let refusals = 0
  const mayAct = () => {
    if (!renewed) refusals += 1
    return renewed
  }
  const { id } = await harness.link({ mayAct })
  renewed = false
  const { id: message } = await harness.accept(id, CONTACT, 'Not before I may')
  await until('the socket to be given up', () => harness.line.sockets === 0)
  const before = refusals
  await until('another attempt to connect', () => refusals > before)
  expect(await harness.network.inbox(CONTACT)).toEqual([])
  await until('the account to be offline', async () => {
    const accounts = await harness.network.listAccounts()
    return accounts.every(({ online }) => !online)
  })

  renewed = true
  await harness.becomes(id, message, 'sent')
  expect(await harness.network.inbox(CONTACT)).toMatchObject([{ text: 'Not before I may', copies: 1 }])
})

import { expect, test, vi } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../../test/deadlines.ts'
import { stage } from '../../../test/units/sender-harness.ts'
import { NO_PACE } from '../../domain/pace.ts'
import type { PaceState, Paces } from '../../store/pace/paces.ts'

const HOUR_MS = 3_600_000
const CONTACT = '5511987654321'
const [ANA, BIA] = ['5511900000001', '5511900000002']

function paced(state: Partial<PaceState>, take: Paces['take'] = async () => ({ kind: 'granted' })) {
  const found = { pace: { ...NO_PACE, newRecipientsPerDay: 1 }, opensAt: 0, newRecipientsAt: 0, ...state }
  const staged = stage({ paces: { find: async () => found, take: vi.fn(take) } as Partial<Paces> as Paces })
  for (const number of [ANA, BIA])
    staged.numbers.set(number, { address: `${number}@s.whatsapp.net`, expiresAt: staged.expiresAt })
  return staged
}

test('a message that waited for the new recipients of a day does not expire because its recipient became a contact', async () => {
  const { sender, accept, link, written, contacts } = paced({ newRecipientsAt: Date.now() - HOUR_MS })
  const waited = accept(ANA, Date.now() - 48 * HOUR_MS)
  contacts.set(ANA, Date.now())
  const old = accept(CONTACT, Date.now() - 48 * HOUR_MS)
  sender.start()
  sender.attach(link)
  await vi.waitFor(() => expect(old.ended).toContain('expired'), CONDITION_WITHIN_MS)
  await vi.waitFor(
    () => expect(written.map(({ whatsappId }) => whatsappId)).toEqual([waited.whatsappId]),
    CONDITION_WITHIN_MS,
  )
})

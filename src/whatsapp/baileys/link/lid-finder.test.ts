import { expect, onTestFinished, test, vi } from 'vitest'
import { LidFinder } from './lid-finder.ts'

const NUMBER = '5511987654321@s.whatsapp.net'
const OLD_LID = '111@lid'
const NEW_LID = '222@lid'

type Socket = ConstructorParameters<typeof LidFinder>[0]

/** A contact that has set up WhatsApp again and has had another LID since. */
function finderOf(answer: () => Promise<unknown>) {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  let known = OLD_LID
  const executeUSyncQuery = vi.fn(answer)
  const lidMapping = {
    getLIDForPN: async () => known,
    storeLIDPNMappings: async ([pair]: { lid: string }[]) => {
      known = pair!.lid
    },
  }
  const socket = { executeUSyncQuery, signalRepository: { lidMapping } } as unknown as Socket
  const finder = new LidFinder(socket, { del: async () => undefined })
  return { executeUSyncQuery, find: () => finder.find(NUMBER, '222') }
}

const found = (lid: string) => async () => ({ list: [{ id: NUMBER, lid }], sideList: [] })

test.each([
  ['does not answer', async () => undefined, 30_000],
  ['refuses', () => Promise.reject(new Error('rate-overlimit')), 30_000],
  ['answers with the known LID', found(OLD_LID), 600_000],
])('if WhatsApp %s, the LID of a number is queried again after a pause', async (_, answer, pauseMs) => {
  const { executeUSyncQuery, find } = finderOf(answer)
  expect(await find()).toBe(OLD_LID)
  executeUSyncQuery.mockImplementation(found(NEW_LID))
  vi.advanceTimersByTime(pauseMs - 1_000)
  expect(await find()).toBe(OLD_LID)
  expect(executeUSyncQuery).toHaveBeenCalledOnce()
  vi.advanceTimersByTime(1_000)
  expect(await find()).toBe(NEW_LID)
})

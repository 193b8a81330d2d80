import type { InstanceClient } from '../api-client.ts'
import type { Network } from '../network.ts'
import type { Arrival, Facts, IncomingText, OfferedIncoming, PhoneEntry } from './facts.ts'
import { forEachConcurrently } from './for-each-concurrently.ts'
import type { Load } from './load.ts'

const READS_AT_ONCE = 8

/** A linked instance and its load. */
export interface LinkedInstance {
  client: InstanceClient
  phone: string
  load: Load | null
}

/** Reads the final state of the service and the phones. */
export async function collectFacts(
  linkedInstances: readonly LinkedInstance[],
  network: Network | null,
  arrivals: Arrival[],
): Promise<Facts> {
  const loads = linkedInstances.map(({ load }) => load).filter(load => load !== null)
  const accepted = loads.flatMap(load => load.accepted)
  const inboxOf = async (phone: string): Promise<PhoneEntry[]> => (await network?.inbox(phone)) ?? []
  const phones = new Map<string, PhoneEntry[]>()
  for (const phone of new Set(accepted.flatMap(text => text.phones))) phones.set(phone, await inboxOf(phone))
  const incoming: IncomingText[] = []
  for (const { phone, load } of linkedInstances) if (load) incoming.push(...inOrderTaken(load, await inboxOf(phone)))
  const clients = new Map(linkedInstances.map(({ client }) => [client.id, client]))
  const states = new Map<string, string>()
  await forEachConcurrently(accepted, READS_AT_ONCE, async ({ instanceId, messageId }) => {
    states.set(messageId, (await clients.get(instanceId)?.message(messageId))?.status ?? 'unknown')
  })
  return { accepted, incoming, arrivals, phones, states, wholeTexts: await readWholeTexts(arrivals, linkedInstances) }
}

/** The texts to an instance, with their positions on the phone of its number. */
function inOrderTaken({ incoming }: Load, onPhone: readonly PhoneEntry[]): IncomingText[] {
  const byText = new Map(onPhone.map(({ text, askedFor }, place) => [text, { place, askedFor }]))
  return incoming.map((text: OfferedIncoming) => {
    const { place = null, askedFor } = byText.get(text.text) ?? {}
    return { ...text, place, ...(askedFor !== undefined && { askedFor }) }
  })
}

/** The whole texts of truncated events, by message ID. */
async function readWholeTexts(
  arrivals: readonly Arrival[],
  linkedInstances: readonly LinkedInstance[],
): Promise<Map<string, string>> {
  const clients = new Map(linkedInstances.map(({ client }) => [client.id, client]))
  const texts = new Map<string, string>()
  const cut = arrivals.filter(
    ({ kind, body }) => kind === 'message.received' && JSON.parse(body).data.truncated === true,
  )
  await forEachConcurrently(cut, READS_AT_ONCE, async ({ instanceId, body }) => {
    const { messageId } = JSON.parse(body).data as { messageId: string }
    const message = await clients.get(instanceId)?.message(messageId)
    if (message) texts.set(messageId, message.text)
  })
  return texts
}

import type { InstanceClient } from '../api-client.ts'
import type { Network } from '../network.ts'
import { eachOf } from './each-of.ts'
import type { Arrival, Facts, IncomingText, OfferedIncoming, PhoneEntry } from './facts.ts'
import type { Load } from './load.ts'

const READS_AT_ONCE = 8

/** An instance, and the texts that went through it. */
export interface Player {
  client: InstanceClient
  phone: string
  load: Load | null
}

/** Reads what the service and the phones say in the end. */
export async function collectFacts(
  players: readonly Player[],
  network: Network | null,
  arrivals: Arrival[],
): Promise<Facts> {
  const loads = players.map(({ load }) => load).filter(load => load !== null)
  const accepted = loads.flatMap(load => load.accepted)
  const inboxOf = async (phone: string): Promise<PhoneEntry[]> => (await network?.inbox(phone)) ?? []
  const phones = new Map<string, PhoneEntry[]>()
  for (const phone of new Set(accepted.flatMap(text => text.phones))) phones.set(phone, await inboxOf(phone))
  const incoming: IncomingText[] = []
  for (const { phone, load } of players) if (load) incoming.push(...inOrderTaken(load, await inboxOf(phone)))
  const clients = new Map(players.map(({ client }) => [client.id, client]))
  const states = new Map<string, string>()
  await eachOf(accepted, READS_AT_ONCE, async ({ instanceId, messageId }) => {
    states.set(messageId, (await clients.get(instanceId)?.message(messageId))?.status ?? 'unknown')
  })
  return { accepted, incoming, arrivals, phones, states, wholeTexts: await readWholeTexts(arrivals, players) }
}

/** What was written to an instance, with the place that it has on the phone of that number. */
function inOrderTaken({ incoming }: Load, onPhone: readonly PhoneEntry[]): IncomingText[] {
  const byText = new Map(onPhone.map(({ text, askedFor }, place) => [text, { place, askedFor }]))
  return incoming.map((text: OfferedIncoming) => {
    const { place = null, askedFor } = byText.get(text.text) ?? {}
    return { ...text, place, ...(askedFor !== undefined && { askedFor }) }
  })
}

/** The texts of which an event carries the beginning only, by message id. */
async function readWholeTexts(arrivals: readonly Arrival[], players: readonly Player[]): Promise<Map<string, string>> {
  const clients = new Map(players.map(({ client }) => [client.id, client]))
  const texts = new Map<string, string>()
  const cut = arrivals.filter(
    ({ kind, body }) => kind === 'message.received' && JSON.parse(body).data.truncated === true,
  )
  await eachOf(cut, READS_AT_ONCE, async ({ instanceId, body }) => {
    const { messageId } = JSON.parse(body).data as { messageId: string }
    const message = await clients.get(instanceId)?.message(messageId)
    if (message) texts.set(messageId, message.text)
  })
  return texts
}

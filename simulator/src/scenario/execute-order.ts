import type { Account } from '../account.ts'
import { lidJid, pnJid } from '../addresses.ts'
import { writeToAccount } from '../contacts/contact-messages.ts'
import { createMessageId } from '../contacts/content.ts'
import { writeOnPhone } from '../contacts/owner-messages.ts'
import { askAgain } from '../contacts/reactions.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import { dismissClient } from '../server/dismissal.ts'
import { restrictionStanza } from '../server/restriction.ts'
import { type Node, node, seconds } from '../wire/nodes.ts'
import type { Order, OrderResult, StanzaText } from './order.ts'

type Of<Kind extends Order['kind']> = Extract<Order, { kind: Kind }>

/** @throws SimulatorError `unknown_account` */
export async function executeOrder(network: Network, order: Order): Promise<OrderResult> {
  const { scenario } = network
  switch (order.kind) {
    case 'rule':
      return { rule: scenario.addRule(order.rule) }
    case 'remove_rule':
      scenario.removeRule(order.id)
      return {}
    case 'release':
      return { released: scenario.release(order.count) }
    case 'clear':
      scenario.clear()
      return {}
    case 'seed':
      scenario.setSeed(order.seed)
      return {}
    case 'latency':
      network.latencyMs = order.ms
      return {}
    case 'refuse_logins':
      scenario.refuseLogins(order.reason, order.count, order.account ?? null)
      return {}
    case 'qr_codes':
      scenario.qrCodes = order.count
      return {}
    case 'fail_linking':
      scenario.linkingFailures.set(order.how, order.count ?? Number.POSITIVE_INFINITY)
      return {}
    case 'play_passkey':
      scenario.passkeyPlays.set(order.how, order.count ?? Number.POSITIVE_INFINITY)
      return {}
    case 'passkey_code':
      return { passkeyCode: network.getAccount(order.account).passkey.code }
    case 'no_restart':
      scenario.restarts = false
      return {}
    case 'batches':
      scenario.batches = true
      return {}
    case 'phone_copies':
      scenario.phoneCopies = true
      return {}
    case 'media_retries':
      scenario.mediaRetries = order.answer
      return {}
    case 'expire_media_auth':
      network.media.expireAuthorizations()
      return {}
    case 'look_up':
      scenario.lookUps.set(order.number, order.finds)
      return {}
    default:
      await executeForAccount(network, order)
      return {}
  }
}

type ForAccount = Of<
  | 'expire_media'
  | 'require_passkey'
  | 'stanza'
  | 'cut'
  | 'stream_error'
  | 'restrict'
  | 'receipt'
  | 'ask_again'
  | 'change_identity'
  | 'add_device'
  | 'write'
  | 'write_on_phone'
>

async function executeForAccount(network: Network, order: ForAccount): Promise<void> {
  const account = network.getAccount(order.kind === 'write' ? order.to : order.account)
  switch (order.kind) {
    case 'expire_media':
      return network.media.expireFilesOf(account.phone)
    case 'require_passkey':
      return account.applyDurably(() => {
        if (order.credential) account.passkey.register(order.credential.id, order.credential.publicKey)
        account.passkey.require(order.required ?? true)
        return []
      })
    case 'stanza':
      account.client?.send(nodeOf(order.stanza))
      return
    case 'cut':
      account.client?.cut()
      return
    case 'stream_error':
      return dismissClient(account, streamError(order))
    case 'restrict':
      return restrict(network, account, order)
    case 'receipt':
      return queueDurably(network, account, [receiptStanza(order)])
    case 'ask_again':
      return account.applyDurably(() => {
        const { id, contact, group } = order
        const chat = { jid: group ?? lidJid(contact), group: group !== undefined }
        return askAgain(network, account, { id, receivedAt: Date.now() }, { number: contact, device: 0 }, chat)
      })
    case 'change_identity':
      return account.applyDurably(() => {
        account.changeIdentity(order.contact)
        return queueAll(network, account, [identityStanza(order.contact)])
      })
    case 'add_device':
      return account.applyDurably(() => {
        const device = account.devices.addCompanion(order.contact)
        const notify = order.notify ?? true
        return queueAll(network, account, notify ? [deviceAddedStanza(order.contact, device)] : [])
      })
    case 'write':
      return write(network, account, order)
    case 'write_on_phone':
      return account.applyDurably(async () => {
        return (await writeOnPhone(network, account, order.to, { text: order.text }, Date.now())).effects
      })
  }
}

function restrict(network: Network, account: Account, order: Of<'restrict'>): Promise<void> {
  const { restrictions } = network.scenario
  const { seconds: durationS, notify = true, saysUntil = true } = order
  if (durationS === null) restrictions.delete(account.phone)
  else restrictions.set(account.phone, { endsAt: (Math.ceil(Date.now() / 1000) + durationS) * 1000, saysUntil })
  return notify ? queueDurably(network, account, [restrictionStanza(network, account)]) : Promise.resolve()
}

function nodeOf({ tag, attrs, content, base64 }: StanzaText): Node {
  if (base64 !== undefined) return node(tag, attrs, Buffer.from(base64, 'base64'))
  return node(tag, attrs, typeof content === 'string' ? content : content?.map(nodeOf))
}

function streamError({ code, conflict }: Of<'stream_error'>): Node {
  return node('stream:error', { code }, conflict && [node('conflict', { type: conflict })])
}

function receiptStanza({ contact, id, type, address = 'lid', group }: Of<'receipt'>): Node {
  const jid = address === 'lid' ? lidJid(contact) : pnJid(contact)
  const sender = group ? { from: group, participant: jid } : { from: jid }
  return node('receipt', { ...sender, id, type, t: seconds(Date.now()) })
}

function identityStanza(contact: string): Node {
  const attrs = { from: lidJid(contact), type: 'encrypt', id: createMessageId(), t: seconds(Date.now()) }
  return node('notification', attrs, [node('identity')])
}

function deviceAddedStanza(contact: string, device: number): Node {
  const attrs = { from: pnJid(contact), type: 'devices', id: createMessageId(), t: seconds(Date.now()) }
  const devices = [pnJid(contact, device), lidJid(contact, device)].map(jid => node('device', { jid }))
  return node('notification', attrs, [node('add', {}, devices)])
}

async function queueDurably(network: Network, account: Account, stanzas: Node[]): Promise<void> {
  await account.applyDurably(() => queueAll(network, account, stanzas))
}

/** Call it inside `applyDurably`. Queues nothing for an account without a client. */
function queueAll(network: Network, account: Account, stanzas: Node[]) {
  if (!account.companion) return []
  return stanzas.map(stanza => release(network, account, account.queue.add(stanza, Date.now())))
}

/**
 * Without `perSecond`, resolves when all texts are written. With it, resolves when the first one is written: the others follow
 * when they are due.
 */
async function write(network: Network, account: Account, order: Of<'write'>): Promise<void> {
  const { from, text, group, count, perSecond } = order
  const one = (n: number) =>
    account.applyDurably(async () => {
      return (await writeToAccount(network, account, { from, text: `${text} ${n}`, group, at: Date.now() })).effects
    })
  if (perSecond === undefined) {
    for (let n = 1; n <= count; n++) await one(n)
    return
  }
  const startAt = Date.now()
  const next = async (n: number): Promise<void> => {
    if (n > count) return
    await one(n)
    network.agenda.add(startAt + (n * 1000) / perSecond, () => {
      next(n + 1).catch(error => network.log(`a stream of texts ended: ${error.message}`))
    })
  }
  await next(1)
}

import type { Account, Client } from '../account.ts'
import { lidJid } from '../addresses.ts'
import { handleCall } from '../contacts/calls.ts'
import type { Network } from '../network.ts'
import { announcePresence, handleChatState, handlePresence } from '../profiles/presence.ts'
import { handleIq } from '../queries/queries.ts'
import { announceDevices } from '../signal/device-lists.ts'
import { child, type Node, node, SERVER, seconds } from '../wire/nodes.ts'
import { handleMessage } from './client-messages.ts'
import type { Connection, Hello, Role } from './connection.ts'
import { unlinkClient } from './dismissal.ts'
import { handleAck, handleReceipt } from './receipts.ts'

/** A logged-in client. Its stanzas are processed one after the other; recording and answering may overlap. */
export class LinkedClient implements Role, Client {
  readonly login: number
  readonly device: number
  readonly version: string
  caughtUp = false
  isAvailable = false
  sendBatch: ((count: number) => void) | null = null
  readonly subscriptions = new Map<string, string>()
  readonly #network: Network
  readonly #connection: Connection
  readonly #account: Account

  constructor(network: Network, connection: Connection, account: Account, { payload }: Hello) {
    this.#network = network
    this.#connection = connection
    connection.phone = account.phone
    this.#account = account
    this.login = network.nextLogin()
    this.device = account.companion?.device ?? 0
    this.version = versionOf(payload)
    account.client?.end(node('stream:error', {}, [node('conflict', { type: 'replaced' })]))
    account.client = this
    if (payload.pushName) void this.#rename(payload.pushName)
    this.send(node('success', { t: seconds(Date.now()), lid: lidJid(account.phone, this.device) }))
  }

  send(stanza: Node): void {
    this.#connection.send(stanza)
  }

  end(stanza: Node): void {
    this.#connection.end(stanza)
  }

  cut(): void {
    this.#connection.close()
  }

  async receive(stanza: Node): Promise<void> {
    if (stanza.tag === 'iq') return this.#answer(stanza)
    const handled = await this.#handle(stanza)
    handled?.durable.catch(error => this.#connection.fail(error))
  }

  closed(): void {
    if (this.#account.client !== this) return
    this.#account.client = null
    if (this.isAvailable) announcePresence(this.#network, this.#account)
  }

  async #handle(stanza: Node): Promise<{ durable: Promise<void> } | null> {
    switch (stanza.tag) {
      case 'message':
        return handleMessage(this.#network, this.#account, this, stanza)
      case 'receipt':
        return handleReceipt(this.#network, this.#account, this, stanza)
      case 'ack':
        return handleAck(this.#account, stanza)
      case 'presence':
        handlePresence(this.#network, this.#account, stanza)
        return this.#rename(stanza.attrs['name'])
      case 'call':
        handleCall(this.#network, this.#account, this, stanza)
        return null
      case 'chatstate':
        handleChatState(this.#network, this.#account, stanza)
        return null
      case 'ib': {
        const batch = child(stanza, 'offline_batch')
        if (batch) this.sendBatch?.(Number(batch.attrs['count']))
        return null
      }
      default:
        return null
    }
  }

  async #answer(iq: Node): Promise<void> {
    if (child(iq, 'remove-companion-device')) return this.#logout(iq)
    const markCaughtUp = () => {
      this.caughtUp = true
    }
    await handleIq({ network: this.#network, account: this.#account, client: this, markCaughtUp }, iq)
  }

  async #logout(iq: Node): Promise<void> {
    await this.#account.applyDurably(() => {
      this.#account.unlink()
      const result = node('iq', { type: 'result', from: SERVER, id: iq.attrs['id'] })
      return [() => this.send(result), () => unlinkClient(this.#account)]
    })
    await announceDevices(this.#network, this.#account)
  }

  async #rename(name: string | undefined): Promise<{ durable: Promise<void> } | null> {
    if (!name) return null
    return this.#account.apply(() => {
      this.#account.setName(name)
    })
  }
}

function versionOf({ userAgent }: Hello['payload']): string {
  const { primary, secondary, tertiary } = userAgent?.appVersion ?? {}
  return [primary, secondary, tertiary].join('.')
}

/** The account that a login belongs to. Null if its keys are not those of a linked client. */
export function findLinkedAccount(network: Network, { payload, noiseKey }: Hello): Account | null {
  const account = network.findAccount(String(payload.username))
  const companion = account?.companion
  if (!companion || companion.device !== Number(payload.device ?? 0) || !companion.noiseKey.equals(noiseKey))
    return null
  return account
}

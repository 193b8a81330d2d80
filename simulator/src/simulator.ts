import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import type { Account } from './account.ts'
import { isGroup, isNumber } from './addresses.ts'
import { saveContacts } from './app-state/address-book.ts'
import { callAs, endCall } from './contacts/calls.ts'
import { checkMessage, contactContent } from './contacts/contact-content.ts'
import { join, writeToAccount } from './contacts/contact-messages.ts'
import { changeGroup, createGroupAs, describeGroup, joinShared } from './contacts/group-administration.ts'
import type { GroupChange } from './contacts/group-types.ts'
import { isForeign } from './contacts/groups.ts'
import { writeAsOwner } from './contacts/owner-messages.ts'
import { uploadOf } from './media/contact-files.ts'
import { Network } from './network.ts'
import { setContactProfile, shownProfile } from './profiles/contact-profiles.ts'
import { phonePresence, setPresence, typeAs } from './profiles/presence.ts'
import { executeOrder } from './scenario/execute-order.ts'
import type { Order, OrderResult } from './scenario/order.ts'
import { parseOrder } from './scenario/parse-order.ts'
import type { ScenarioState } from './scenario/scenario.ts'
import { type Admit, Connection, type Hello } from './server/connection.ts'
import { dismissClient, unlinkClient } from './server/dismissal.ts'
import { findLinkedAccount, LinkedClient } from './server/linked-client.ts'
import { LinkingClient, readQr } from './server/linking.ts'
import { listen } from './server/listen.ts'
import { announceDevices } from './signal/device-lists.ts'
import { passKeysAsObjects } from './signal/keys-as-objects.ts'
import { quietLibsignal } from './signal/quiet-libsignal.ts'
import {
  type CodeReader,
  type ContactCall,
  type ContactMessage,
  type ContactPresence,
  type ContactProfile,
  type ContactTyping,
  type MediaAccess,
  type OwnerMessage,
  type SavedContact,
  type Simulator,
  SimulatorError,
  type SimulatorOptions,
} from './types.ts'
import { node } from './wire/nodes.ts'
import { createTlsCertificate } from './wire/tls-certificate.ts'

const PATH = '/ws/chat'
const MAX_SOCKET_MESSAGE_BYTES = 17 * 1024 * 1024

export type RequestHandler = (simulator: Simulator, request: IncomingMessage, response: ServerResponse) => void

/**
 * Starts a network and its server; `onRequest` answers plain HTTP requests on the same port. From now on libsignal
 * prints nothing in this thread.
 */
export async function createSimulator(options: SimulatorOptions = {}, onRequest?: RequestHandler): Promise<Simulator> {
  quietLibsignal()
  passKeysAsObjects()
  const certificate = createTlsCertificate()
  const network = new Network(options, certificate)
  const listener: RequestListener = (request, response) => {
    if (onRequest) onRequest(simulator, request, response)
    else response.writeHead(404).end()
  }
  const server = options.tls ? createTlsServer(certificate, listener) : createServer(listener)
  const connections = new Set<Connection>()
  const sockets = new WebSocketServer({
    server,
    path: PATH,
    maxPayload: MAX_SOCKET_MESSAGE_BYTES,
    perMessageDeflate: false,
  })
  // It re-emits the server's errors, which `listen` rejects with.
  sockets.on('error', () => undefined)
  sockets.on('connection', socket => {
    const connection = new Connection(socket, network, admitTo(network))
    connections.add(connection)
    socket.on('close', () => connections.delete(connection))
  })
  const host = options.host ?? '127.0.0.1'
  await listen(server, options.port ?? 0, host)
  await network.media.listen(options.mediaPort ?? 0, host).catch(async error => {
    server.close()
    throw error
  })
  const { port } = server.address() as AddressInfo
  const simulator = new ListeningSimulator(
    network,
    `${options.tls ? 'wss' : 'ws'}://${host.includes(':') ? `[${host}]` : host}:${port}${PATH}`,
    { hosts: network.media.hosts, certificate: certificate.cert },
    async () => {
      network.agenda.close()
      for (const connection of connections) connection.close()
      await Promise.all(network.accounts().map(account => account.close().catch(() => undefined)))
      sockets.close()
      server.closeAllConnections()
      await new Promise<void>(resolve => server.close(() => resolve()))
      await network.media.close()
    },
  )
  return simulator
}

/**
 * A client that names an account is admitted if it is linked to that account. A client that names none is waiting to be
 * linked. 401 makes a client discard its credentials, so it is sent only if they are certainly invalid.
 */
function admitTo(network: Network): Admit {
  return (connection, hello) => {
    if (!hello.payload.username) return admitUnlinked(network, connection, hello)
    const refusal = network.scenario.takeLoginRefusal(String(hello.payload.username))
    if (refusal) {
      connection.end(node('failure', { reason: refusal, location: 'sim' }))
      return null
    }
    const account = findLinkedAccount(network, hello)
    if (account && !account.isOff) return new LinkedClient(network, connection, account, hello)
    const reason = account || network.mayOpen(String(hello.payload.username)) ? '503' : '401'
    connection.end(node('failure', { reason, location: 'sim' }))
    return null
  }
}

function admitUnlinked(network: Network, connection: Connection, hello: Hello): LinkingClient | null {
  const { linkingFailures } = network.scenario
  if (linkingFailures.take('refuse_version')) connection.end(node('failure', { reason: '405', location: 'sim' }))
  else if (linkingFailures.take('refuse_device')) connection.close()
  else return new LinkingClient(network, connection, hello)
  return null
}

class ListeningSimulator implements Simulator {
  readonly url: string
  readonly media: MediaAccess
  readonly #network: Network
  readonly #stop: () => Promise<void>
  #closing: Promise<void> | null = null

  constructor(network: Network, url: string, media: MediaAccess, stop: () => Promise<void>) {
    this.#network = network
    this.url = url
    this.media = media
    this.#stop = stop
  }

  async openAccount(key: string): Promise<{ phone: string }> {
    const { phone } = await this.#open(key)
    return { phone }
  }

  async closeAccount(key: string): Promise<void> {
    this.#checkOpen()
    await this.#network.takeOut(key, async account => {
      dismissClient(account, node('stream:error', { code: '503' }))
      await account.close()
    })
  }

  async switchPhone(key: string, on: boolean): Promise<void> {
    const account = await this.#open(key)
    account.isOff = !on
    if (!on) dismissClient(account, node('stream:error', { code: '503' }))
  }

  async removeAccount(key: string): Promise<void> {
    this.#checkOpen()
    await this.#network.takeOut(key, async account => {
      this.#network.markRemoved(account.phone)
      unlinkClient(account)
      await account.erase()
      await this.#network.media.files.eraseAllOf(account.phone)
    })
    const account = await this.#network.load(key)
    if (!account) return
    this.#network.markRemoved(account.phone)
    await account.erase()
    await this.#network.media.files.eraseAllOf(account.phone)
  }

  async scanQr(qr: string, key: string = randomUUID(), name?: string): Promise<{ phone: string }> {
    this.#checkOpen()
    const { client, advSecret } = readQr(this.#network, qr)
    const account = await this.#open(key)
    if (name) await account.applyDurably(() => account.setName(name))
    await client.link(account, advSecret)
    return { phone: account.phone }
  }

  async enterPairingCode(code: string, phone: string, by?: CodeReader): Promise<{ phone: string }> {
    this.#checkOpen()
    const waiting = await this.#network.codeRequests.find(phone, by && readQr(this.#network, by.qr).client)
    if (!waiting)
      throw new SimulatorError('unknown_pairing_code', `no client has requested a pairing code for ${phone}`)
    const account = by ? await this.#open(by.account) : (this.#network.findAccount(phone) ?? (await this.#open(phone)))
    await waiting.linkByCode(account, code.replace(/[^0-9A-Za-z]/g, '').toUpperCase())
    return { phone: account.phone }
  }

  async unlink(phone: string): Promise<void> {
    this.#checkOpen()
    const account = this.#network.getAccount(phone)
    await account.applyDurably(() => {
      account.unlink()
      return [() => unlinkClient(account)]
    })
    await announceDevices(this.#network, account)
  }

  async writeAs(message: ContactMessage): Promise<{ id: string }> {
    this.#checkOpen()
    checkMessage(this.#network, message)
    const { from, to, text, media: given, quote, group, name, undecryptable, unavailable } = message
    const account = this.#network.getAccount(to)
    if (quote !== undefined && !account.inboxes.find(quote))
      throw new SimulatorError('invalid_argument', `no phone has the message ${quote}`)
    const media = given && { description: given, file: await uploadOf(this.#network.media, to, given) }
    let id = ''
    if (group) await joinShared(this.#network, account, group, from)
    await account.applyDurably(async () => {
      const content = contactContent(account, message) ?? undefined
      if (name !== undefined) account.setContactName(from, name)
      const writing = { from, text, media, message: content, quote, group, undecryptable, unavailable, at: Date.now() }
      const written = await writeToAccount(this.#network, account, writing)
      id = written.id
      return written.effects
    })
    return { id }
  }

  async writeAsOwner(message: OwnerMessage): Promise<{ id: string }> {
    this.#checkOpen()
    return writeAsOwner(this.#network, message)
  }

  async saveContacts(phone: string, contacts: readonly SavedContact[]): Promise<void> {
    this.#checkOpen()
    await saveContacts(this.#network, this.#network.getAccount(phone), contacts)
  }

  async joinGroup(group: string, numbers: readonly string[]): Promise<void> {
    this.#checkOpen()
    if (!isGroup(group) || isForeign(group) || !numbers.every(isNumber)) {
      throw new SimulatorError('invalid_argument', 'needs the JID of a group, and phone numbers')
    }
    for (const account of this.#network.accounts()) {
      if (!numbers.includes(account.phone)) continue
      for (const number of numbers) await joinShared(this.#network, account, group, number)
      await account.applyDurably(() => numbers.flatMap(number => join(this.#network, account, group, number)))
    }
  }

  async createGroup(by: string, subject: string, members: readonly string[]) {
    this.#checkOpen()
    return createGroupAs(this.#network, by, subject, members)
  }

  async changeGroup(group: string, change: GroupChange) {
    this.#checkOpen()
    return changeGroup(this.#network, group, change)
  }

  async group(group: string, account?: string) {
    this.#checkOpen()
    return describeGroup(this.#network, group, account)
  }

  async typeAs(typing: ContactTyping): Promise<void> {
    this.#checkOpen()
    typeAs(this.#network, typing)
  }

  async setPresence(presence: ContactPresence): Promise<void> {
    this.#checkOpen()
    setPresence(this.#network, presence)
  }

  async callAs(call: ContactCall) {
    this.#checkOpen()
    return callAs(this.#network, call)
  }

  async endCall(id: string): Promise<void> {
    this.#checkOpen()
    await endCall(this.#network, id)
  }

  async calls(number: string) {
    this.#checkOpen()
    return [...this.#network.calls.values()].filter(({ from, to }) => from === number || to === number)
  }

  async setProfile(profile: ContactProfile): Promise<void> {
    this.#checkOpen()
    await setContactProfile(this.#network, profile)
  }

  async profile(number: string, viewer?: string) {
    this.#checkOpen()
    return shownProfile(this.#network, number, viewer)
  }

  async presence(number: string) {
    this.#checkOpen()
    return phonePresence(this.#network, number)
  }

  async inbox(number: string, whole = false) {
    this.#checkOpen()
    const own = this.#network.findAccount(number)
    const scopes = own ? [own] : this.#network.accounts()
    return scopes.flatMap(scope => scope.inboxes.list(number, whole)).sort((a, b) => a.receivedAt - b.receivedAt)
  }

  async listAccounts() {
    this.#checkOpen()
    return this.#network.accounts().map(({ key, phone, companion, client }) => {
      const clientVersion = client && { version: client.version }
      return { key, phone, linked: companion !== null, online: client !== null, ...clientVersion }
    })
  }

  async misbehave(order: Order): Promise<OrderResult> {
    this.#checkOpen()
    return executeOrder(this.#network, parseOrder(order))
  }

  async scenario(): Promise<ScenarioState> {
    this.#checkOpen()
    return this.#network.scenario.state()
  }

  close(): Promise<void> {
    this.#closing ??= this.#stop()
    return this.#closing
  }

  #open(key: string): Promise<Account> {
    this.#checkOpen()
    return this.#network.openAccount(key)
  }

  #checkOpen(): void {
    if (this.#closing) throw new SimulatorError('closed', 'the simulator is closed')
  }
}

/**
 * A client without an account. Its states:
 *
 *   shown        it has references for QR codes, and may have asked for a pairing code
 *   confirming   a phone has linked it: the account has recorded the client, and the client is asked to sign
 *   done         it has signed, receives 515, and reconnects as a linked client
 *
 * The account durably records the client before the client is notified. A client that considers itself linked is
 * therefore linked.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { proto } from 'baileys/WAProto/index.js'
import type { Account, Companion } from '../account.ts'
import { lidJid, parseAddress, pnJid } from '../addresses.ts'
import type { Network, WaitingClient } from '../network.ts'
import { PasskeyExchange } from '../passkey/passkey-exchange.ts'
import { announceDevices, rawIdOf } from '../signal/device-lists.ts'
import { isSignedBy, type KeyPair, sign } from '../signal/keys.ts'
import { SimulatorError } from '../types.ts'
import { bytes, child, type Node, node, SERVER, seconds, uint } from '../wire/nodes.ts'
import type { Connection, Hello, Role } from './connection.ts'
import { unlinkClient } from './dismissal.ts'
import { PairingCodeExchange } from './pairing-code.ts'

const QR_REFS = 6
const REF_BYTES = 24
const SECRET_BYTES = 32
/** A linked client must sign within this time. */
const CONFIRM_WITHIN_MS = 10_000
const ACCOUNT_SIGNATURE = Buffer.from([6, 0])
const DEVICE_SIGNATURE = Buffer.from([6, 1])

export class LinkingClient implements Role, WaitingClient {
  readonly #network: Network
  readonly #connection: Connection
  readonly #companion: Omit<Companion, 'device'>
  readonly #refs: string[] = []
  #code: PairingCodeExchange | null = null
  /** True once a phone has begun to link it. From then on no other phone can. */
  #isBeingLinked = false
  #passkey: PasskeyExchange | null = null
  #iqs = 0
  /** The iq that the client must answer with its signature. */
  #confirmation: { id: string; details: Buffer; accountKey: Buffer; settle: (error?: Error) => void } | null = null

  /** @throws Error if the client's hello lacks the data for linking */
  constructor(network: Network, connection: Connection, { payload, noiseKey }: Hello) {
    this.#network = network
    this.#connection = connection
    this.#companion = readCompanion(payload, noiseKey)
    for (let n = 0; n < (network.scenario.qrCodes ?? QR_REFS); n++) {
      const ref = `2@${randomBytes(REF_BYTES).toString('base64url')}`
      this.#refs.push(ref)
      network.qrRefs.set(ref, this)
    }
    const refs = this.#refs.map(ref => node('ref', {}, Buffer.from(ref)))
    this.#query([node('pair-device', {}, refs)])
  }

  shows(noiseKey: Buffer, identity: Buffer): boolean {
    return this.#companion.noiseKey.equals(noiseKey) && this.#companion.identity.equals(identity)
  }

  async receive(stanza: Node): Promise<void> {
    const { id, type } = stanza.attrs
    if (stanza.tag !== 'iq') return
    if (type === 'result' && id === this.#confirmation?.id) return this.#confirm(stanza)
    if (type !== 'get' && type !== 'set') return
    const request = child(stanza, 'link_code_companion_reg')
    const refusal = request && this.#refusalOf(request)
    if (refusal) {
      this.#connection.send(node('iq', { from: SERVER, type: 'error', id }, [node('error', refusal)]))
      return
    }
    const ceremony = (await this.#passkey?.answer(stanza)) ?? null
    if (ceremony && 'error' in ceremony) {
      const error = node('error', { code: ceremony.error, text: 'not-authorized' })
      this.#connection.send(node('iq', { from: SERVER, type: 'error', id }, [error]))
      return
    }
    const content = request ? this.#exchangeCode(request) : (ceremony ?? undefined)
    this.#connection.send(node('iq', { from: SERVER, type: 'result', id }, content))
  }

  closed(): void {
    for (const ref of this.#refs) this.#network.qrRefs.delete(ref)
    this.#network.codeRequests.remove(this)
    const error = failure('the client closed its connection before it was linked')
    this.#code?.abandon(error)
    this.#passkey?.abandon(error)
    this.#confirmation?.settle(error)
  }

  async link(account: Account, advSecret: Buffer): Promise<void> {
    if (this.#isBeingLinked) throw failure('another phone is linking this client')
    await this.#failAsSet(account, advSecret)
    this.#isBeingLinked = true
    const secret = account.passkey.isRequired ? await this.#askForPasskey(account, advSecret) : advSecret
    let device = 0
    await account.applyDurably(() => {
      device = account.nextDevice()
      account.link({ ...this.#companion, device })
      return [() => unlinkClient(account)]
    })
    await announceDevices(this.#network, account)
    if (this.#connection.isClosed) throw failure('the client has closed its connection')
    await this.#askToSign(account, device, secret)
  }

  #askForPasskey(account: Account, advSecret: Buffer): Promise<Buffer> {
    const { passkeyPlays } = this.#network.scenario
    this.#passkey = new PasskeyExchange({
      account,
      companion: this.#companion,
      advSecret,
      takePlay: play => passkeyPlays.take(play),
      notify: (type, content) => this.#notify(type, content),
    })
    return this.#passkey.run()
  }

  async linkByCode(account: Account, code: string): Promise<void> {
    if (!this.#code) throw new SimulatorError('unknown_pairing_code', 'no client has requested a pairing code')
    if (this.#network.scenario.linkingFailures.take('refresh')) {
      // The next code that is typed waits for the client's next request.
      this.#network.codeRequests.remove(this)
      this.#notify('link_code_companion_reg', node('link_code_companion_reg', { stage: 'refresh_code' }))
      throw failure('WhatsApp asked the client for a new pairing code')
    }
    const advSecret = await this.#code.answer(code, account.devices.get(account.phone).identity, notification =>
      this.#connection.send(notification),
    )
    await this.link(account, advSecret)
  }

  /** @throws SimulatorError `linking_failed` if the scenario makes this attempt fail */
  async #failAsSet(account: Account, advSecret: Buffer): Promise<void> {
    const { linkingFailures } = this.#network.scenario
    if (linkingFailures.take('passkey')) {
      // The exchange is not kept, so nothing that the client answers has an effect.
      const asked = this.#askForPasskey(account, advSecret)
      this.#passkey = null
      asked.catch(() => undefined)
      throw failure('WhatsApp asked the client for a passkey')
    }
    if (linkingFailures.take('refresh')) {
      this.#notify('companion_reg_refresh', node('pair-device-rotate-qr'))
      throw failure('WhatsApp asked the client for a new QR code')
    }
    if (linkingFailures.take('device_limit')) throw failure('the phone has too many linked devices')
    if (linkingFailures.take('phone_offline')) throw failure('the phone is offline')
    if (linkingFailures.take('bad_signature')) await this.#askToSign(account, 1, randomBytes(SECRET_BYTES))
    if (linkingFailures.take('unauthorized')) {
      this.#connection.end(node('stream:error', { code: '401' }))
      throw failure('WhatsApp ended the connection of the client')
    }
  }

  /** The error with which WhatsApp answers a request about a pairing code. Null if it accepts the request. */
  #refusalOf({ attrs: { stage } }: Node): Record<string, string> | null {
    const { linkingFailures } = this.#network.scenario
    if (stage === 'companion_hello' && linkingFailures.take('refuse_code')) return { code: '400', text: 'bad-request' }
    if (stage !== 'companion_finish' || !linkingFailures.take('device_limit')) return null
    this.#code?.abandon(failure('the phone has too many linked devices'))
    return { code: '419', text: 'resource-limit' }
  }

  #notify(type: string, content: Node | undefined): void {
    const id = randomBytes(8).toString('hex')
    this.#connection.send(
      node('notification', { from: SERVER, type, id, t: seconds(Date.now()) }, content && [content]),
    )
  }

  #askToSign(account: Account, device: number, advSecret: Buffer): Promise<void> {
    const phoneIdentity = account.devices.get(account.phone).identity
    const details = deviceDetails(account.phone, device)
    const container = signDevice(phoneIdentity, details, this.#companion.identity, advSecret)
    return new Promise<void>((resolve, reject) => {
      const late = () => settle(failure('the client did not confirm that it is linked'))
      const timer = setTimeout(late, CONFIRM_WITHIN_MS)
      const settle = (error?: Error) => {
        clearTimeout(timer)
        this.#confirmation = null
        if (error) reject(error)
        else resolve()
      }
      const id = this.#query([
        node('pair-success', {}, [
          node('device-identity', {}, container),
          node('platform', { name: 'android' }),
          node('device', { jid: pnJid(account.phone, device), lid: lidJid(account.phone, device) }),
        ]),
      ])
      this.#confirmation = { id, details, accountKey: phoneIdentity.publicKey, settle }
    })
  }

  #confirm(stanza: Node): void {
    const { details, accountKey, settle } = this.#confirmation!
    const encoded = bytes(child(stanza, 'pair-device-sign'), 'device-identity')
    const identity = proto.ADVSignedDeviceIdentity.decode(encoded ?? Buffer.alloc(0))
    const message = Buffer.concat([DEVICE_SIGNATURE, details, this.#companion.identity, accountKey])
    if (!isSignedBy(this.#companion.identity, message, identity.deviceSignature ?? Buffer.alloc(0))) {
      settle(failure('the client signed its device identity wrongly'))
      this.#connection.close()
      return
    }
    settle()
    if (this.#network.scenario.restarts) this.#connection.end(node('stream:error', { code: '515' }))
    else this.#connection.send(node('success', { t: seconds(Date.now()) }))
  }

  #exchangeCode(request: Node): Node[] | undefined {
    const { jid, stage } = request.attrs
    if (stage === 'companion_hello') {
      const address = parseAddress(jid)
      if (!address) return undefined
      this.#code = new PairingCodeExchange(request, this.#companion.identity)
      this.#network.codeRequests.add(address.number, this)
      return [node('link_code_companion_reg', {}, [node('link_code_pairing_ref', {}, this.#code.ref)])]
    }
    if (stage === 'companion_finish') this.#code?.finish(request)
    return undefined
  }

  #query(content: Node[]): string {
    const id = `link-${++this.#iqs}`
    this.#connection.send(node('iq', { from: SERVER, type: 'set', id, xmlns: 'md', t: seconds(Date.now()) }, content))
    return id
  }
}

/** @throws SimulatorError `unknown_qr` */
export function readQr(network: Network, qr: string): { client: WaitingClient; advSecret: Buffer } {
  const [ref = '', noiseKey = '', identity = '', advSecret = ''] = qr.trim().split('#').at(-1)!.split(',')
  const client = network.qrRefs.get(ref)
  if (!client?.shows(Buffer.from(noiseKey, 'base64'), Buffer.from(identity, 'base64'))) {
    throw new SimulatorError('unknown_qr', 'no connected client shows this QR code: it is unknown or has expired')
  }
  return { client, advSecret: Buffer.from(advSecret, 'base64') }
}

function deviceDetails(phone: string, device: number): Buffer {
  const identity = {
    rawId: rawIdOf(phone),
    timestamp: Math.floor(Date.now() / 1000),
    keyIndex: device,
    accountType: proto.ADVEncryptionType.E2EE,
    deviceType: proto.ADVEncryptionType.E2EE,
  }
  return Buffer.from(proto.ADVDeviceIdentity.encode(identity).finish())
}

/**
 * The phone's proof that this client belongs to it: signed by the phone, with an HMAC under the secret that the client
 * showed.
 */
function signDevice(phone: KeyPair, details: Buffer, clientIdentity: Buffer, advSecret: Buffer): Uint8Array {
  const accountSignature = sign(phone.privateKey, Buffer.concat([ACCOUNT_SIGNATURE, details, clientIdentity]))
  const identity = { details, accountSignatureKey: phone.publicKey, accountSignature }
  const signed = proto.ADVSignedDeviceIdentity.encode(identity).finish()
  const hmac = createHmac('sha256', advSecret).update(signed).digest()
  return proto.ADVSignedDeviceIdentityHMAC.encode({ details: signed, hmac }).finish()
}

function failure(message: string): SimulatorError {
  return new SimulatorError('linking_failed', message)
}

function readCompanion(payload: proto.ClientPayload, noiseKey: Buffer): Omit<Companion, 'device'> {
  const data = payload.devicePairingData
  const { eRegid, eIdent, eSkeyId, eSkeyVal, eSkeySig } = data ?? {}
  if (!eRegid || eIdent?.length !== 32 || !eSkeyId || eSkeyVal?.length !== 32 || !eSkeySig) {
    throw new Error('incomplete pairing data')
  }
  return {
    noiseKey,
    identity: Buffer.from(eIdent),
    registrationId: uint(Buffer.from(eRegid)) ?? 0,
    signedPreKey: {
      id: uint(Buffer.from(eSkeyId)) ?? 0,
      publicKey: Buffer.from(eSkeyVal),
      signature: Buffer.from(eSkeySig),
    },
  }
}

import type { Records } from './records.ts'
import { SignalDevice } from './signal-device.ts'

/** How many contacts' keys and sessions stay in memory. */
const MAX_READY_DEVICES = 256

/** How many sessions the devices of one scope keep. If one is lost, the other side is asked to open a new one. */
const MAX_SESSIONS = 5_000

interface ChangedContact {
  /** How often it has set up its phone again. */
  identities: number
  /** How many devices it has besides its phone. */
  companions: number
}

/** The devices of the simulated users of one scope, with their Signal keys and sessions. */
export class SimulatedDevices {
  readonly #secret: Buffer
  readonly #records: Records
  readonly #signal = new Map<string, string>()
  /** The names of the sessions that may be forgotten, the least recently used first. */
  readonly #sessions = new Set<string>()
  readonly #ready = new Map<string, SignalDevice>()
  /** Contacts that differ from their initial state. */
  readonly #changedContacts = new Map<string, ChangedContact>()

  /** @param secret the keys are derived from it */
  constructor(secret: Buffer, records: Records) {
    this.#secret = secret
    this.#records = records
  }

  restoreSignal(name: string, value: string): void {
    this.#keep(name, value)
  }

  restoreContact(number: string, text: string): void {
    this.#changedContacts.set(number, JSON.parse(text))
  }

  /** A device of a user (this account or a contact): the phone (0) or a device linked to it. */
  get(number: string, device = 0): SignalDevice {
    const name = device === 0 ? number : `${number}:${device}`
    const ready = this.#ready.get(name)
    if (ready) return ready
    const { identities = 0 } = this.#changedContacts.get(number) ?? {}
    const purpose = identities === 0 ? name : `${name} ${identities}`
    const created = new SignalDevice(Buffer.concat([this.#secret, Buffer.from(purpose)]), {
      get: key => this.#signal.get(`${name}/${key}`),
      put: (key, value) => {
        this.#keep(`${name}/${key}`, value)
        this.#records.put(`signal/${name}/${key}`, () => value)
      },
    })
    this.#ready.set(name, created)
    if (this.#ready.size > MAX_READY_DEVICES) this.#ready.delete(this.#ready.keys().next().value!)
    return created
  }

  /** True if the phone of `number` has a session with this device of `phone`: one wrote and the other read. */
  hasSession(number: string, phone: string, device: number | undefined): boolean {
    return this.#signal.has(`${number}/session/${phone}.${device}`)
  }

  /** Removes all sessions with this device of `phone`. */
  dropSessions(phone: string, device: number): void {
    const sessions = `/session/${phone}.${device}`
    for (const key of this.#signal.keys()) {
      if (key.endsWith(sessions)) this.#drop(key)
    }
    this.#ready.clear()
  }

  /** Gives the contact's phone new keys and no sessions. */
  changeIdentity(number: string): void {
    const { identities, companions } = this.#changed(number)
    this.#change(number, { identities: identities + 1, companions })
    this.#ready.delete(number)
    for (const key of this.#signal.keys()) if (key.startsWith(`${number}/`)) this.#drop(key)
  }

  /** Links one more device to the contact and returns its number. */
  addCompanion(number: string): number {
    const { identities, companions } = this.#changed(number)
    this.#change(number, { identities, companions: companions + 1 })
    return companions + 1
  }

  /** How many devices a contact has besides its phone. They are numbered from 1. */
  companionsOf(number: string): number {
    return this.#changed(number).companions
  }

  #changed(number: string): ChangedContact {
    return this.#changedContacts.get(number) ?? { identities: 0, companions: 0 }
  }

  #change(number: string, changed: ChangedContact): void {
    this.#changedContacts.set(number, changed)
    this.#records.put(`changed/${number}`, () => JSON.stringify(changed))
  }

  #keep(key: string, value: string): void {
    this.#signal.set(key, value)
    const [owner, kind, peer] = key.split('/')
    // A phone cannot ask its own client for a new session.
    if (kind !== 'session' || peer?.startsWith(`${owner}.`)) return
    this.#sessions.delete(key)
    this.#sessions.add(key)
    if (this.#sessions.size > MAX_SESSIONS) this.#drop(this.#sessions.values().next().value!)
  }

  #drop(key: string): void {
    this.#signal.delete(key)
    this.#sessions.delete(key)
    this.#records.drop(`signal/${key}`)
  }
}

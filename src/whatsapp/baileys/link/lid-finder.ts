import { USyncQuery, USyncUser, type WASocket } from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { lidOf, userOf } from '../addresses.ts'
import type { DeviceCache } from '../recipient-devices.ts'

/** The time between two queries for the LID of a number. Strangers can cause these queries. */
const QUERY_EVERY_MS = 600_000
/** The time until the next query if WhatsApp did not answer or its answer could not be stored. */
const UNANSWERED_EVERY_MS = 30_000
const MAX_QUERIED = 1_000

type Socket = Pick<WASocket, 'executeUSyncQuery' | 'signalRepository'>
type Devices = Pick<DeviceCache, 'del'>

interface Query {
  /** The time before which the number is not queried again (`performance.now()`). */
  notBefore: number
  ended: Promise<void>
}

/**
 * Finds the LIDs of numbers. WhatsApp may give a number another LID, such as when its owner sets up WhatsApp again. Baileys
 * would use the first one forever.
 */
export class LidFinder {
  readonly #socket: Socket
  readonly #devices: Devices
  /** The latest query for each number, by address. */
  readonly #queries = new BoundedMap<string, Query>(MAX_QUERIED)

  constructor(socket: Socket, devices: Devices) {
    this.#socket = socket
    this.#devices = devices
  }

  /**
   * The LID address of a number. Null if it has none or WhatsApp does not answer. Queries WhatsApp if the LID is unknown or
   * differs from `expected`, the LID whose owner claims to have this number.
   * @param expected the digits of a LID
   */
  async find(address: string, expected: string): Promise<string | null> {
    const { lidMapping } = this.#socket.signalRepository
    const known = await lidMapping.getLIDForPN(address)
    if (known === null || lidOf(known) === expected) return known
    await this.refresh(address)
    return lidMapping.getLIDForPN(address)
  }

  /**
   * Queries WhatsApp for the LID of a number, at most once in 10 minutes, or in 30 s if WhatsApp did not answer. If the LID has
   * changed, the next message to the number queries its devices again. Never rejects: without an answer, nothing changes.
   * @param address the address of a number
   */
  refresh(address: string): Promise<void> {
    const latest = this.#queries.get(address)
    const now = performance.now()
    if (latest && now < latest.notBefore) return latest.ended
    const ended = this.#query(address)
      .catch(() => false)
      .then(isAnswered => {
        if (!isAnswered) query.notBefore = now + UNANSWERED_EVERY_MS
      })
    const query: Query = { notBefore: now + QUERY_EVERY_MS, ended }
    this.#queries.set(address, query)
    return ended
  }

  /** @returns false if WhatsApp did not answer */
  async #query(address: string): Promise<boolean> {
    const { executeUSyncQuery, signalRepository } = this.#socket
    const user = new USyncUser().withId(address)
    const answer = await executeUSyncQuery(new USyncQuery().withContext('background').withLIDProtocol().withUser(user))
    // After a timeout, Baileys returns nothing.
    if (!answer) return false
    const number = userOf(address)
    const lid = answer.list.find(({ id }) => userOf(id) === number)?.['lid']
    if (number === undefined || typeof lid !== 'string' || lidOf(lid) === undefined) return true
    const known = await signalRepository.lidMapping.getLIDForPN(address)
    if (lidOf(known) === lidOf(lid)) return true
    // First, so that a kill in between leaves no devices of the earlier LID.
    await this.#devices.del(number)
    await signalRepository.lidMapping.storeLIDPNMappings([{ lid, pn: address }])
    return true
  }
}

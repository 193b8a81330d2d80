import { Agent } from 'node:https'
import type { WASocket } from 'baileys'
import type { FileSource } from '../../../domain/media.ts'
import type { InstanceProxy } from '../../../outbound/proxy/instance-proxy.ts'
import type { LibraryCalls } from '../library-scope.ts'
import { type Attachment, attach } from '../media/attach.ts'
import { downloadFile } from '../media/download.ts'
import { MediaConnections } from '../media/media-connection.ts'
import { type ReUpload, requestReUpload } from '../media/re-upload.ts'

/** 100 MiB at 1 Mbit/s. A transfer that takes longer is tried again. */
const TRANSFER_TIMEOUT_MS = 15 * 60_000

/** Exchanges files with WhatsApp's media hosts for as long as a link lasts. */
export class LinkFiles {
  readonly #calls: LibraryCalls
  readonly #socket: () => WASocket
  readonly #simulated: boolean
  readonly #proxy: InstanceProxy | null
  readonly #connections = new MediaConnections(node => this.#socket().query(node))

  constructor(
    calls: LibraryCalls,
    socket: () => WASocket,
    { simulated, proxy }: { simulated: boolean; proxy: InstanceProxy | null },
  ) {
    this.#calls = calls
    this.#socket = socket
    this.#simulated = simulated
    this.#proxy = proxy
  }

  /**
   * Uploads the file to WhatsApp's media hosts, which hold it for some weeks.
   * @returns the content of a message that refers to it
   * @throws UploadFailed, FileUnavailable, or LinkClosed when the link ends first
   */
  upload(attachment: Attachment): Promise<Uint8Array> {
    const connect = (renew: boolean) => this.#connections.get(renew)
    return this.#calls.orClosed(() => attach(attachment, { connect, ...this.#route(), signal: this.#transferSignal() }))
  }

  /**
   * @throws DownloadFailed; UploadFailed if WhatsApp names no media host; LinkClosed or DownloadFailed when the link
   * ends first; AlteredFile after the last byte
   */
  download(source: FileSource): AsyncIterable<Uint8Array> {
    const findHosts = async () => (await this.#calls.orClosed(() => this.#connections.get(false))).hosts
    return downloadFile(source, { findHosts, ...this.#route(), signal: this.#transferSignal() })
  }

  /** @throws LinkClosed when the link ends first */
  requestReUpload(source: FileSource): Promise<ReUpload> {
    return this.#calls.orClosed(() => requestReUpload(this.#socket(), source, this.#calls.closed))
  }

  #route() {
    const simulated = this.#simulated
    const openAgent = () => this.#proxy?.agent(!simulated) ?? new Agent(simulated ? { rejectUnauthorized: false } : {})
    return { simulated, openAgent }
  }

  #transferSignal(): AbortSignal {
    return AbortSignal.any([this.#calls.closed, AbortSignal.timeout(TRANSFER_TIMEOUT_MS)])
  }
}

import { isIP } from 'node:net'
import { join } from 'node:path'
import ipaddr from 'ipaddr.js'
import type { AllowedNetwork, MediaPlace } from './domain/media.ts'
import { claimFolder, type FolderRecords } from './media/storage/folder-id.ts'
import { integerIn, numberIn, parseHttpUrl, type ReadSetting, tryDecode } from './setting-values.ts'

const DAY_MS = 86_400_000
const MIB = 1_048_576

export interface MediaSettings {
  /** Null: a folder in `dataDir`. With `databaseUrl`: no storage, because nodes would have to share it. */
  place: MediaPlace | null
  retentionMs: number
  /** The quota and the rate limit of each instance. */
  quotaBytes: number
  bytesPerMinute: number
  /** Networks that are not public but that files may be fetched from; with a port, only at that port. */
  allowedNetworks: readonly AllowedNetwork[]
}

export function readMedia(read: ReadSetting): MediaSettings {
  const mebibytes = (name: string, fallback: number) =>
    read(name, fallback, 'a whole number of MiB, 1–1000000000', integerIn(1, 1e9)) * MIB
  const days = read('MEDIA_RETENTION_DAYS', 30, 'a number of days, 0.00001–36500', numberIn(1e-5, 36_500))
  return {
    place: read('MEDIA_URL', null, 's3://bucket/prefix?endpoint=https://…&region=… or file:///folder', parseMediaPlace),
    retentionMs: Math.round(days * DAY_MS),
    quotaBytes: mebibytes('MEDIA_QUOTA_MB', 2_048),
    bytesPerMinute: mebibytes('MEDIA_MB_PER_MINUTE', 600),
    allowedNetworks: read(
      'MEDIA_ALLOWED_NETWORKS',
      [],
      'addresses and CIDR networks separated by commas, each with a port if it is not 80 or 443, such as 10.0.0.0/8,10.1.2.3:9000,[fd00::/8]:9000',
      parseNetworksAtPorts,
    ),
  }
}

/** Where files are and their limits. Null if nodes share the database and no storage that they share is configured. */
export function mediaOf({
  media,
  databaseUrl,
  dataDir,
}: {
  media: MediaSettings
  databaseUrl: string | null
  dataDir: string
}) {
  const place: MediaPlace | null =
    media.place ?? (databaseUrl ? null : { kind: 'folder', path: join(dataDir, 'media') })
  return place && { ...media, place }
}

/** With the ID of the folder that MEDIA_URL names, because that folder may not be mounted now or later. */
export async function withFolderId<S extends { media: MediaSettings }>(
  settings: S,
  records: FolderRecords,
): Promise<S> {
  const { media } = settings
  if (media.place?.kind !== 'folder') return settings
  const id = await claimFolder(media.place.path, records)
  return { ...settings, media: { ...media, place: { ...media.place, id } } }
}

function parseMediaPlace(text: string): MediaPlace | undefined {
  const url = URL.parse(text)
  if (!url || url.username || url.password || url.hash) return undefined
  const path = tryDecode(url.pathname)
  if (path === null) return undefined
  if (url.protocol === 'file:') return url.hostname === '' && path !== '/' ? { kind: 'folder', path } : undefined
  if (url.protocol !== 's3:' || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.hostname)) return undefined
  const known = [...url.searchParams.keys()].every(name => name === 'endpoint' || name === 'region')
  const endpoint = url.searchParams.get('endpoint')
  if (!known || (endpoint !== null && !parseHttpUrl(endpoint))) return undefined
  const prefix = path.replace(/^\/|\/$/g, '')
  return {
    kind: 'bucket',
    bucket: url.hostname,
    prefix: prefix === '' ? '' : `${prefix}/`,
    endpoint,
    region: url.searchParams.get('region'),
  }
}

export function parseNetworksAtPorts(text: string): AllowedNetwork[] | undefined {
  const networks = text.split(',').map(part => parseNetworkAtPort(part.trim()))
  return networks.every(network => network !== undefined) ? networks : undefined
}

function parseNetworkAtPort(text: string): AllowedNetwork | undefined {
  if (isNetwork(text)) return text
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d+)$/.exec(text) ?? []
  const network = bracketed ?? plain ?? ''
  const port = integerIn(1, 65_535)(digits)
  return isNetwork(network) && port !== undefined ? { network, port } : undefined
}

function isNetwork(text: string): boolean {
  return isIP(text) !== 0 || ipaddr.isValidCIDR(text)
}

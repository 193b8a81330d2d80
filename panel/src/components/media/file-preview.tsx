import { useInViewport } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ADMIN, ApiError } from '../../api/client.ts'
import { mediumQuery } from '../../api/queries.ts'
import type { Medium } from '../../api/types.ts'
import { useLanguage, useWords } from '../../i18n/i18n.tsx'
import { sizeText } from '../../text/size.ts'
import { Problem } from '../feedback/problem.tsx'
import { DownloadIcon, FileIcon } from '../icons.tsx'
import classes from './media.module.css'

/** Raster images only. A browser never runs anything in them. */
const SHOWN_IMAGES = /^image\/(jpeg|png|webp|gif)$/
/** A list loads the pictures whole. Larger ones would keep the connections busy that the stream of changes needs. */
const MAX_THUMBNAIL_BYTES = 200_000
const PENDING_EVERY_MS = 3_000
/** The service serves a limited number of previews at once. */
const LOAD_AGAIN_AFTER_MS = 1_500
const MAX_LOADS = 4

/** The address of the bytes. The answer is an attachment, so opening it saves the file and never shows it. */
export function contentUrl(instanceId: string, mediaId: string): string {
  return `${ADMIN}/instances/${instanceId}/media/${mediaId}/content`
}

/**
 * The file of a message: a picture, a player, or its name and size; or why it is not there. It is read when it is on the
 * screen, because a long conversation may have thousands of files.
 */
export function MessageFile({ instanceId, mediaId }: { instanceId: string; mediaId: string }) {
  const words = useWords()
  const { ref, inViewport } = useInViewport()
  const {
    data: medium,
    error,
    refetch,
  } = useQuery({
    ...mediumQuery(instanceId, mediaId),
    enabled: inViewport,
    refetchInterval: ({ state }) => (state.data?.status === 'pending' ? PENDING_EVERY_MS : false),
  })
  const isGone = error instanceof ApiError && error.code === 'media_not_found'
  return (
    <div ref={ref} className={classes.place}>
      {medium && <FilePreview instanceId={instanceId} medium={medium} />}
      {!medium && isGone && <p className={classes.absent}>{words.files.goneText}</p>}
      {!medium && !isGone && <Problem error={error} onRetry={() => void refetch()} />}
    </div>
  )
}

export function FilePreview({ instanceId, medium }: { instanceId: string; medium: Medium }) {
  const words = useWords()
  const { language } = useLanguage()
  const name = medium.filename ?? words.files.unnamed
  const url = contentUrl(instanceId, medium.id)
  const size = sizeText(medium.size, language)
  if (medium.status !== 'ready') return <p className={classes.absent}>{absenceText(medium, words)}</p>
  return (
    <div className={classes.file}>
      <Shown medium={medium} url={url} label={words.files.preview(name)} />
      <a className={classes.row} href={url} download={name} aria-label={words.files.download(`${name} ${size}`)}>
        <DownloadIcon size={16} />
        <span className={classes.name} dir="auto">
          {name}
        </span>{' '}
        <span className={classes.size}>{size}</span>
      </a>
    </div>
  )
}

/** Why the bytes are not there. */
export function absenceText({ status, error }: Medium, words: ReturnType<typeof useWords>): string {
  if (status === 'pending') return words.files.pendingText
  return error === null ? words.files.goneText : words.files.reasons[error.code]
}

function Shown({ medium: { mimetype }, url, label }: { medium: Medium; url: string; label: string }) {
  if (SHOWN_IMAGES.test(mimetype)) return <Picture url={url} label={label} className={classes.picture} />
  const player = { src: url, controls: true, preload: 'none', 'aria-label': label } as const
  // A file that somebody sent has no subtitles.
  if (mimetype.startsWith('video/')) return <video className={classes.video} {...player} />
  if (mimetype.startsWith('audio/')) return <audio className={classes.audio} {...player} />
  return null
}

/** A small picture for a list; an icon for large pictures and other files. */
export function Thumbnail({ instanceId, medium }: { instanceId: string; medium: Medium }) {
  const isShown = medium.status === 'ready' && SHOWN_IMAGES.test(medium.mimetype) && medium.size <= MAX_THUMBNAIL_BYTES
  if (!isShown) {
    return (
      <span className={classes.blank}>
        <FileIcon />
      </span>
    )
  }
  return <Picture url={contentUrl(instanceId, medium.id)} label="" className={classes.thumbnail} />
}

/** Loads the picture again if the service is busy. */
function Picture({ url, label, className }: { url: string; label: string; className: string | undefined }) {
  const [loads, setLoads] = useState(1)
  const loadAgain = () => setTimeout(() => setLoads(loads + 1), LOAD_AGAIN_AFTER_MS)
  return (
    <img
      key={loads}
      className={className}
      src={url}
      alt={label}
      loading="lazy"
      decoding="async"
      onError={loads < MAX_LOADS ? loadAgain : undefined}
    />
  )
}

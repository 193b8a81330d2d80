import { ActionIcon, Button, Progress, TextInput } from '@mantine/core'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import type { Message } from '../../api/types.ts'
import { type Attachment, changeUnsent, useUnsent } from '../../api/unsent.ts'
import { uploadFile } from '../../api/upload.ts'
import { Notice } from '../../components/feedback/notice.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useLanguage, useWords } from '../../i18n/i18n.tsx'
import { sizeText } from '../../text/size.ts'
import classes from './send-form.module.css'

const NONE = { state: 'none', error: null } as const satisfies Attachment

/**
 * Uploads a file as soon as it is chosen. A file chosen later replaces it. With `url`, the service fetches the file.
 * Nothing changes while the message is being sent.
 * @param place of the message, which keeps a file that is stored
 * @param first the file of a message that is sent again
 */
export function useAttachment(instanceId: string, place: string, first?: Message['media']) {
  const words = useWords()
  const unsent = useUnsent(place)
  const firstAttachment: Attachment =
    first === undefined || first.status !== undefined
      ? NONE
      : { state: 'stored', name: first.filename ?? words.files.unnamed, file: { id: first.id } }
  // A file that could not be fetched needs another address.
  const firstUrl = first?.status === undefined ? null : ''
  const { attachment = firstAttachment, url = firstUrl, isPending: isLocked = false } = unsent
  const upload = useRef<AbortController | null>(null)
  useEffect(
    () => () => {
      if (!upload.current) return
      upload.current.abort()
      changeUnsent(place, { attachment: { ...NONE, isInterrupted: true } })
    },
    [place],
  )

  function attach(file: File): void {
    if (isLocked) return
    upload.current?.abort()
    const started = new AbortController()
    upload.current = started
    const { signal } = started
    const name = file.name || words.files.unnamed
    const show = (next: Attachment) => {
      if (signal.aborted) return
      if (next.state !== 'uploading') upload.current = null
      changeUnsent(place, { attachment: next, url: null })
    }
    show({ state: 'uploading', name, percent: 0 })
    uploadFile(
      instanceId,
      file,
      part => show({ state: 'uploading', name, percent: Math.floor(part * 100) }),
      signal,
    ).then(
      stored => show({ state: 'stored', name, file: stored }),
      error => show({ state: 'none', error }),
    )
  }
  function detach(): void {
    upload.current?.abort()
    upload.current = null
    changeUnsent(place, { attachment: NONE, url: null })
  }
  const setUrl = (to: string | null) => changeUnsent(place, { attachment: NONE, url: to })
  return { attachment, attach, detach, url, setUrl, isLocked }
}

interface AttachmentFieldProps extends ReturnType<typeof useAttachment> {
  children: ReactNode
}

/** Takes files by button, by drop and by paste. @param children the other fields. A file can be dropped onto them too */
export function AttachmentField({ attachment, attach, detach, url, setUrl, isLocked, children }: AttachmentFieldProps) {
  const words = useWords()
  const [isOver, setOver] = useState(false)
  const picker = useRef<HTMLInputElement>(null)
  const take = (files: FileList) => {
    const [file] = files
    if (file) attach(file)
    return file !== undefined
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button does the same by keyboard
    <div
      className={classes.dropZone}
      data-over={isOver}
      onDragOver={event => {
        if (!event.dataTransfer.types.includes('Files')) return
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={event => setOver(event.currentTarget.contains(event.relatedTarget as Node | null))}
      onDrop={event => {
        setOver(false)
        if (take(event.dataTransfer.files)) event.preventDefault()
      }}
      onPaste={event => {
        if (take(event.clipboardData.files)) event.preventDefault()
      }}
    >
      {children}
      <div className={classes.attachment}>
        <input
          ref={picker}
          type="file"
          hidden
          onChange={event => {
            if (event.currentTarget.files) take(event.currentTarget.files)
            event.currentTarget.value = ''
          }}
        />
        {attachment.state === 'none' && (
          <>
            <Button size="compact-sm" variant="default" disabled={isLocked} onClick={() => picker.current?.click()}>
              {words.files.attach}
            </Button>
            <Button
              size="compact-sm"
              variant="default"
              aria-expanded={url !== null}
              disabled={isLocked}
              onClick={() => setUrl(url === null ? '' : null)}
            >
              {words.files.fromUrl}
            </Button>
            <span className={classes.again}>{isOver ? words.files.drop : words.files.attachHint}</span>
          </>
        )}
        {attachment.state !== 'none' && <Attached attachment={attachment} isLocked={isLocked} onDetach={detach} />}
      </div>
      {attachment.state === 'none' && url !== null && (
        <TextInput
          size="xs"
          mt="xs"
          label={words.files.url}
          autoFocus
          placeholder="https://example.com/invoice.pdf"
          inputMode="url"
          autoComplete="off"
          readOnly={isLocked}
          value={url}
          onChange={event => setUrl(event.currentTarget.value)}
        />
      )}
      {attachment.state === 'none' && <Problem error={attachment.error} />}
      {attachment.state === 'none' && attachment.isInterrupted && <Notice tone="bad">{words.files.interrupted}</Notice>}
    </div>
  )
}

interface AttachedProps {
  attachment: Exclude<Attachment, { state: 'none' }>
  isLocked: boolean
  onDetach: () => void
}

function Attached({ attachment, isLocked, onDetach }: AttachedProps) {
  const words = useWords()
  const { language } = useLanguage()
  const { name } = attachment
  const isUploading = attachment.state === 'uploading'
  const text = isUploading
    ? words.files.uploading(name, attachment.percent)
    : words.files.attached(name, attachment.file.size === undefined ? null : sizeText(attachment.file.size, language))
  return (
    <>
      <span className={classes.attachedName} role="status">
        {text}
      </span>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={words.files.detach(name)}
        disabled={isLocked}
        onClick={onDetach}
      >
        <span aria-hidden>✕</span>
      </ActionIcon>
      {isUploading && <Progress value={attachment.percent} aria-label={text} w="100%" />}
    </>
  )
}

import { ActionIcon, Button, Tooltip } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import { useWords } from '../../i18n/i18n.tsx'
import { copyText } from '../../text/copy-text.ts'
import { useToast } from '../feedback/toasts.tsx'
import { CheckIcon, CopyIcon } from '../icons.tsx'
import classes from './copy.module.css'

const SHOWN_MS = 1_800

/** Copies a text, and shows a message: `said`, or that the browser refused it. */
export function useCopyAndSay(): (text: string, said: string) => void {
  const words = useWords()
  const toast = useToast()
  return (text, said) =>
    void copyText(text).then(
      () => toast(said),
      () => toast(words.common.notCopied, 'bad'),
    )
}

/** Copies a value, and says so for a moment, or says that the browser refused it. */
function useCopy(value: string): { copied: boolean; copy: () => void } {
  const words = useWords()
  const toast = useToast()
  const [copied, setCopied] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const copy = () =>
    void copyText(value).then(
      () => {
        setCopied(true)
        clearTimeout(timer.current)
        timer.current = setTimeout(() => setCopied(false), SHOWN_MS)
      },
      () => toast(words.common.notCopied, 'bad'),
    )
  return { copied, copy }
}

/** @param what completes the label "Copy …" for screen readers */
export function CopyIconButton({ value, what }: { value: string; what: string }) {
  const words = useWords()
  const { copied, copy } = useCopy(value)
  return (
    <Tooltip label={copied ? words.common.copied : words.common.copy(what)}>
      <ActionIcon
        variant="subtle"
        color={copied ? 'green' : 'gray'}
        onClick={copy}
        aria-label={copied ? words.common.copied : words.common.copy(what)}
      >
        {copied ? <CheckIcon size={16} /> : <CopyIcon size={16} />}
      </ActionIcon>
    </Tooltip>
  )
}

/** A value to paste elsewhere. */
export function CopyField({ label, value, hidden = false }: { label: string; value: string; hidden?: boolean }) {
  return (
    <div className={classes.field}>
      <span className={classes.label}>{label}</span>
      <code className={classes.value}>{hidden ? '•'.repeat(24) : value}</code>
      <CopyIconButton value={value} what={label} />
    </div>
  )
}

/** Text to paste into a terminal or an editor. */
export function CodeBlock({ code, label }: { code: string; label: string }) {
  const words = useWords()
  const { copied, copy } = useCopy(code)
  return (
    <div className={classes.block}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard (WCAG 2.1.1) */}
      <section className={classes.code} tabIndex={0} aria-label={label}>
        <pre>{code}</pre>
      </section>
      <Button
        className={classes.copy}
        size="compact-xs"
        variant="default"
        onClick={copy}
        leftSection={copied ? <CheckIcon size={14} /> : <CopyIcon size={14} />}
      >
        {copied ? words.common.copied : words.common.copyWord}
        <span className="visually-hidden"> {label}</span>
      </Button>
    </div>
  )
}

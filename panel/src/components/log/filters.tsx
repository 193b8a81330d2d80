import { Button, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { useWords } from '../../i18n/i18n.tsx'
import { SearchIcon } from '../icons.tsx'
import { useAppliedText } from './applied-text.ts'
import classes from './filters.module.css'
import { useIsNarrow } from './narrow.ts'

const APPLY_AFTER_MS = 350

/** @param active how many filters are set */
export function FilterBar({ active, children }: { active: number; children: ReactNode }) {
  const words = useWords()
  const isNarrow = useIsNarrow()
  const [isOpen, setOpen] = useState(false)
  const bar = <div className={classes.bar}>{children}</div>
  if (!isNarrow) return bar
  return (
    <>
      <Button
        variant="default"
        mb="sm"
        leftSection={<SearchIcon />}
        onClick={() => setOpen(!isOpen)}
        aria-expanded={isOpen}
      >
        {words.common.filters(active)}
      </Button>
      {isOpen && bar}
    </>
  )
}

interface TextFilterProps {
  label: string
  placeholder: string
  value: string | undefined
  onChange: (value: string | undefined) => void
  /** Applies and clears the field on Enter, or once it holds a whole ID. */
  onEnter?: boolean
}

const WHOLE_ID = /^(msg|evt)_[a-z0-9]{26}$/

/** Applies the text once typing pauses. */
export function TextFilter({ label, placeholder, value, onChange, onEnter = false }: TextFilterProps) {
  const { text, setText, apply } = useAppliedText(
    value ?? '',
    applied => onChange(applied || undefined),
    onEnter ? null : APPLY_AFTER_MS,
  )
  return (
    <TextInput
      label={label}
      placeholder={placeholder}
      value={text}
      onChange={event => {
        const typed = event.currentTarget.value
        const isWhole = onEnter && WHOLE_ID.test(typed.trim())
        if (isWhole) apply(typed.trim())
        setText(isWhole ? '' : typed)
      }}
      onKeyDown={event => {
        if (event.key !== 'Enter' || !text.trim()) return
        apply(text.trim())
        if (onEnter) setText('')
      }}
      maxLength={64}
      autoComplete="off"
    />
  )
}

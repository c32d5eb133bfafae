//! Types of the standard library.

use core::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZero,
};
use std::{borrow::Cow, rc::Rc, sync::Arc};

use super::{KeyPart, KeyText, KeyWriter};

/// Types whose `Display` is canonical.
macro_rules! displayed {
    ($($type:ty),* $(,)?) => {$(
        impl KeyText for $type {
            fn write_key(&self, writer: &mut KeyWriter) {
                writer.push_display(self);
            }
        }

        impl KeyPart for $type {}
    )*};
}

macro_rules! integers {
    ($($type:ty),* $(,)?) => {
        displayed!($($type, NonZero<$type>),*);
    };
}

integers!(
    i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize
);
displayed!(bool, IpAddr, Ipv4Addr, Ipv6Addr);

impl KeyText for str {
    fn write_key(&self, writer: &mut KeyWriter) {
        writer.push_str(self);
    }
}

impl KeyPart for str {}

impl KeyText for String {
    fn write_key(&self, writer: &mut KeyWriter) {
        writer.push_str(self);
    }
}

impl KeyPart for String {}

impl KeyText for char {
    fn write_key(&self, writer: &mut KeyWriter) {
        writer.push_str(self.encode_utf8(&mut [0; 4]));
    }
}

impl KeyPart for char {}

impl KeyText for [u8] {
    fn write_key(&self, writer: &mut KeyWriter) {
        writer.push_bytes(self);
    }
}

impl KeyPart for [u8] {}

impl<const N: usize> KeyText for [u8; N] {
    fn write_key(&self, writer: &mut KeyWriter) {
        writer.push_bytes(self);
    }
}

impl<const N: usize> KeyPart for [u8; N] {}

impl KeyText for Vec<u8> {
    fn write_key(&self, writer: &mut KeyWriter) {
        writer.push_bytes(self);
    }
}

impl KeyPart for Vec<u8> {}

macro_rules! pointers {
    ($($type:ty),* $(,)?) => {$(
        impl<T: KeyText + ?Sized> KeyText for $type {
            fn write_key(&self, writer: &mut KeyWriter) {
                T::write_key(self, writer);
            }
        }

        impl<T: KeyPart + ?Sized> KeyPart for $type {}
    )*};
}

pointers!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

impl<T: KeyText + ToOwned + ?Sized> KeyText for Cow<'_, T> {
    fn write_key(&self, writer: &mut KeyWriter) {
        T::write_key(self, writer);
    }
}

impl<T: KeyPart + ToOwned + ?Sized> KeyPart for Cow<'_, T> {}

macro_rules! tuples {
    ($(($($name:ident $index:tt),+))*) => {$(
        impl<$($name: KeyText),+> KeyText for ($($name,)+) {
            fn write_key(&self, writer: &mut KeyWriter) {
                $(writer.push(&self.$index);)+
            }
        }

        impl<$($name: KeyPart),+> KeyPart for ($($name,)+) {}
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}
